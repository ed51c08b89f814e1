"""What the agents of a town do in a step of the clock: remember, plan, meet, and what can be told of it in the end."""
