"""The NVIDIA driver."""
