"""The checks that the shipped checklists include."""
