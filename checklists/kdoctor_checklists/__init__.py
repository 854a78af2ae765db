"""The shipped checklists."""
