"""Reads GPUs through NVML, in child processes."""
