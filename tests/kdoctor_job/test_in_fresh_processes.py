"""``kdoctor.preflight(restore=DIR)``: which jobs can be made again in fresh processes."""

from pathlib import Path
from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import smoke_case, smoke_run
from kdoctor_job import in_fresh_processes
from kdoctor_job.in_fresh_processes import restored


@pytest.fixture(autouse=True)
def full_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUs whose memory this process holds."""
    monkeypatch.setattr(in_fresh_processes, "_grows", lambda: False)


def build() -> None:
    """A function of a job's module."""


class OfMain:
    __module__ = "__main__"
    __qualname__ = "build"


HERE = f"{__name__}:build"
ON_GPUS = smoke_run("smoke.own-model", 2, smoke_case("own-model", 2))


@cases(
    ({"model": build, "data": build}, f"--model {HERE} --data {HERE}"),
    ({"model": build, "data": build, "fit_arguments": build}, f"--fit-arguments {HERE}"),
    ({"model": lambda: None, "data": build}, f"--model MODULE:FUNCTION --data {HERE}"),
    ({"model": OfMain(), "data": build}, "--model MODULE:FUNCTION"),
    ({"model": build, "data": build, "fit_arguments": {"callbacks": []}}, "--fit-arguments MODULE:FUNCTION"),
)
def test_what_is_not_tested_is_unknown_with_the_command(parts: dict[str, Any], command: str) -> None:
    case = restored(parts, Path("saves"), steps=8, steps_per_epoch=None, run=ON_GPUS)
    assert (case.name, case.outcome) == ("restore", "skipped")
    assert command in (case.error_message or "")
    assert "--restore saves" in (case.error_message or "")
