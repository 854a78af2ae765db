"""Snapshots: the facts of a machine as a document."""
