"""What the scenarios train with, and how they compare weights."""
