"""What the exit code of a command means. Which one a run ends with is decided in ``kdoctor.engine.judge.conclude``."""

EXIT_PASS = 0
"""Passed."""
EXIT_FAIL = 1
"""A check failed, at or over ``--fail-on``."""
EXIT_USAGE = 2
"""Wrong usage, or a broken checklist, snapshot or plug-in."""
EXIT_UNKNOWN = 3
"""Nothing failed, but a check at or over ``--fail-on`` could not be judged, or nothing was tested, or every training
that was asked for was skipped."""
EXIT_INTERNAL = 4
"""kdoctor itself failed."""
EXIT_INTERRUPTED = 130
"""The user ended the run."""
