"""The command that this extension adds to kdoctor."""

from kdoctor.cli.lazy import LazyCommand

DIAGNOSE = LazyCommand(
    "kdoctor_diagnose.command:diagnose",
    "Find out from its logs why a job failed.",
    "Example: kdoctor diagnose train.log, or: python train.py 2>&1 | kdoctor diagnose -",
    place="front",
    reads=(".log", ".out", ".err"),
)
