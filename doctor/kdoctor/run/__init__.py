"""One run, from options to a finished report."""
