"""The report for terminals and logs."""
