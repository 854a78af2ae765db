"""The command that this extension adds to kdoctor."""

from kdoctor.cli.lazy import LazyCommand

LINT = LazyCommand(
    "kdoctor_lint.command:lint",
    "Lint training scripts for common multi-GPU mistakes, without running them.",
    "Example: kdoctor lint --format github train.py notebooks/",
)
