"""How the GPUs are connected."""
