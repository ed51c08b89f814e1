"""Public test seams: a chat model that follows a script, and local servers that speak the providers' protocols."""
