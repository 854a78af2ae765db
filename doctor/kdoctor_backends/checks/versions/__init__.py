"""What a job on JAX needs of its environment."""
