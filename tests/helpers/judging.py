"""The date that tests judge by."""

from __future__ import annotations

from datetime import date

TODAY = date(2026, 11, 20)
