"""The one door to chat models, and the offline model."""
