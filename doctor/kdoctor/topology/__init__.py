"""How the GPUs are connected, and which to use for N replicas."""
