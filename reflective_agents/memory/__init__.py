"""Long-term memory (Generative Agents, arXiv 2304.03442): a stream of memories over LangGraph's store, retrieved by
recency, importance and relevance, and the tree of reflections on it. No model is asked here."""
