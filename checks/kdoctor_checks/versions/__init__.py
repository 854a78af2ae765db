"""What is installed in the environment, and whether it fits together."""
