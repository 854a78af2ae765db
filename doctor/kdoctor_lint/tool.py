"""The linter as a tool of ``kdoctor mcp``."""

from kdoctor.cli.captured import document_of
from kdoctor.errors import UsageError
from kdoctor_lint.report.json import Lint


def lint(paths: list[str]) -> Lint:
    """Find multi-GPU mistakes in training scripts, without a run.

    Args:
        paths: scripts, notebooks or folders.
    """
    if not paths or "-" in paths:
        raise UsageError("name scripts, notebooks or folders")
    return document_of(Lint, "lint", "--format=json", "--", *paths)
