"""A product that uses this project as a library: strategies beside its own routes, agents, context and database."""
