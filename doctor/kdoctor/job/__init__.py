"""``kdoctor.preflight`` and ``kdoctor.guard``: the job's own model and data, examined where the job runs.

This package alone runs in the user's process and with the user's TensorFlow, which is there already: a model that is
in memory cannot be handed to a child. Everything else of kdoctor keeps TensorFlow in child processes.
"""

from kdoctor.job.run import Preflight, PreflightError, guard, preflight

__all__ = ["Preflight", "PreflightError", "guard", "preflight"]
