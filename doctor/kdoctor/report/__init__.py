"""Report formats: one module each, a pure function of the report."""
