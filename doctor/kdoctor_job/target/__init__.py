"""Looks at the job's own model and data: in a child of ``kdoctor check``, or where ``kdoctor.preflight`` is called."""
