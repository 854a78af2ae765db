"""What a script does, derived from its code: names, scopes, models, datasets, and how they flow."""
