"""The date that tests judge by."""

from datetime import date

TODAY = date(2026, 11, 20)
