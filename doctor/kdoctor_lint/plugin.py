"""The command that this extension adds to kdoctor."""

from kdoctor.cli.lazy import LazyCommand

LINT = LazyCommand(
    "kdoctor_lint.command:lint",
    "Find multi-GPU mistakes in training scripts, without a run.",
    "Example: kdoctor lint --format github train.py notebooks/",
    place="front",
)
