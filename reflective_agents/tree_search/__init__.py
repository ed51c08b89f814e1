"""Tree search: algorithms over plain data, and the loop that carries out what they ask for."""
