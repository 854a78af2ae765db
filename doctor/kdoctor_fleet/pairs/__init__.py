"""Trains on pairs of nodes and on all of them together, and finds the node or the link that does not work."""
