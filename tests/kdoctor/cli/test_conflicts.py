"""Options that contradict each other, or would have no effect, are usage errors."""

from __future__ import annotations

import pytest

from helpers.command import kdoctor
from kdoctor.cli.conflicts import refuse_with
from kdoctor.errors import UsageError
from kdoctor.run.plan import own_job

NO_TRAINING = ("check", "-c", "cpu-smoke", "--no-smoke")
SNAPSHOT = ("--snapshot", "node.json")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((*NO_TRAINING, "--steps", "3"), "--steps requires --model"),
        ((*NO_TRAINING, "--replicas", "2"), "--replicas 2"),
        ((*NO_TRAINING, "--lock", "x.yaml", "--no-lock"), "--no-lock"),
        (("check", *SNAPSHOT, "--python", "p", "--save-snapshot", "s"), "--python and --save-snapshot"),
        (("snapshot", "-c", "cpu-smoke", "--no-smoke", "--replicas", "2"), "--replicas 2"),
        (("snapshot", "--import", "x.txt", "--no-smoke"), "--no-smoke"),
        (("snapshot", "--import", "x.txt", "-c", "cpu-smoke"), "--checklist"),
        (("checklist", "record", "cpu-smoke", *SNAPSHOT, "--replicas", "2"), "--replicas"),
        (("checklist", "record", "cpu-smoke", *SNAPSHOT, "--python", "p"), "--python"),
        (("checklist", "init", "new.yaml", *SNAPSHOT, "--python", "p"), "--python"),
        (("checklist", "show", "cpu-smoke", "--plain", "--resolved"), "--resolved"),
        (("rollback", *SNAPSHOT, "--python", "p"), "--python"),
        (("lint", "--explain", "jit-compile", "train.py"), "PATH"),
    ],
)
def test_useless_option_is_refused(arguments: tuple[str, ...], named: str) -> None:
    done = kdoctor(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr


@pytest.mark.parametrize("values", [(3, None, None), (None, 4, None), (None, None, 5.0), (0, 4, 5.0)])
def test_options_of_a_model_require_it(values: tuple[int | None, int | None, float | None]) -> None:
    with pytest.raises(UsageError, match="--model\n"):
        own_job(None, None, *values)
    assert own_job(None, None, None, None, None) is None
    with pytest.raises(UsageError, match="--fit-arguments requires --model"):
        own_job(None, None, None, None, None, fit_arguments="job:arguments")
    with pytest.raises(UsageError, match=r"--fit-arguments job.py: expected"):
        own_job("job:build", "job:read", None, None, None, fit_arguments="job.py")


def test_only_given_options_are_refused() -> None:
    refuse_with("--snapshot", None, {"--python": "p"}, why="")
    refuse_with("--snapshot", "x", {"--python": None, "--no-smoke": False, "--plugin": []}, why="")
    with pytest.raises(UsageError, match="--replicas cannot be used with --snapshot"):
        refuse_with("--snapshot", "x", {"--python": None, "--replicas": 0}, why="")
