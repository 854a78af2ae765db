"""Diffs of checklists and locks: which expectations were loosened, tightened or moved."""
