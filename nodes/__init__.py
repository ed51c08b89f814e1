"""The steps that strategies share."""
