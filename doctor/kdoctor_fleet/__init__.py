"""Brings the reports of many nodes together and judges them as one fleet."""
