"""Report formats: one file each, a pure function of the report."""
