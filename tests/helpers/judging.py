"""The date and the version matrix that tests judge by."""

from __future__ import annotations

from datetime import date
from functools import cache

from kdoctor.matrix.load import load_matrix

shipped_matrix = cache(load_matrix)
"""The shipped version matrix, read once."""

TODAY = date(2026, 11, 20)
