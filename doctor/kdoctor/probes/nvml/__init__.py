"""NVML, called in a child process because a call may hang."""
