"""Programs that run in the examined interpreter of a node."""
