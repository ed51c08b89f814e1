"""Where agents look things up: search engines, the local index and the articles that come with it."""
