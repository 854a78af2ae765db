"""What a script does, found out by reading it: names, scopes, models, datasets, and how they flow."""
