"""The `reflect` command: runs the strategies, shows how they go on, keeps their threads."""
