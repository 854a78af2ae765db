"""Examines a machine and a Python environment before a multi-GPU Keras job."""

__version__ = "0.1.0"
