"""Search trees to look at and to learn from: as text, Mermaid, one page of HTML, and training examples."""
