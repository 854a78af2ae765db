"""Known failures of multi-GPU Keras jobs, and the messages by which people meet them."""
