"""Text in any language: words, sentences, and what is read out of them."""
