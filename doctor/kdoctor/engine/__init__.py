"""The engine: which checks exist, how facts are judged, and what a report holds. Pure."""
