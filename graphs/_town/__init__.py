"""What the agents of a town do in a step of the clock: remember, plan, meet, and report in the end."""
