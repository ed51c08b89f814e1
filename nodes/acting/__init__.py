"""Acting: what an agent sees of its task, and doing what it wants to do."""
