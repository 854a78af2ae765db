"""Checklists of fleets, and the checks of the network that the shipped checklists include."""
