"""How the GPUs are connected, and which ones to use for N replicas."""
