"""The one door to chat models and embeddings."""
