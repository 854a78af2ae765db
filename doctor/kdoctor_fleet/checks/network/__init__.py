"""Checks of the network between the machines of a job."""
