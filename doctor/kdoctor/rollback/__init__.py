"""Commands that restore a recorded state."""
