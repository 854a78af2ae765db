"""The fleet as one HTML page."""
