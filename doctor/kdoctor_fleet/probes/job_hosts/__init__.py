"""Asks the network about the hosts of a job over several machines, in a child process with a deadline."""
