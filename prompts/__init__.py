"""What models are told: one file of templates a strategy."""
