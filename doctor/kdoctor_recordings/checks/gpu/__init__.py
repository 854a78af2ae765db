"""Results of diagnostics."""
