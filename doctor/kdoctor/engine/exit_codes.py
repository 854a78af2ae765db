"""Exit codes of the commands. It imports nothing, so that errors are reported without loading the engine."""

EXIT_PASS = 0
"""Passed."""
EXIT_FAIL = 1
"""A check failed at or above ``--fail-on``."""
EXIT_USAGE = 2
"""Usage error, or a broken checklist, snapshot or plug-in."""
EXIT_UNKNOWN = 3
"""Inconclusive: no failures, but a required check could not be evaluated, nothing was tested, or all training was
skipped."""
EXIT_INTERNAL = 4
"""kdoctor itself failed."""
EXIT_INTERRUPTED = 130
"""The user ended the run."""
