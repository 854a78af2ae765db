"""The diagnosis of logs as a tool of ``kdoctor mcp``."""

from kdoctor.cli.captured import document_of
from kdoctor.errors import UsageError
from kdoctor_diagnose.model import Diagnosis


def diagnose(logs: list[str]) -> Diagnosis:
    """Find out from its logs why a job failed.

    Args:
        logs: paths of the logs of one job, of folders or notebooks.
    """
    if "-" in logs:
        raise UsageError("stdin is not a log here: name files")
    return document_of(Diagnosis, "diagnose", "--format=json", "--", *logs)
