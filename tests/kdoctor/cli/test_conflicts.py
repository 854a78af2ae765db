"""Options that contradict each other, or would have no effect, are usage errors."""

import pytest

from helpers.cases import cases
from helpers.command import kdoctor
from kdoctor.cli.conflicts import refuse_with
from kdoctor.errors import UsageError

NO_TRAINING = ("check", "-c", "cpu-smoke", "--no-smoke")
SNAPSHOT = ("--snapshot", "node.json")


@cases(
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
)
def test_useless_option_is_refused(arguments: tuple[str, ...], named: str) -> None:
    done = kdoctor(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr


def test_only_given_options_are_refused() -> None:
    refuse_with("--snapshot", None, {"--python": "p"}, why="")
    refuse_with("--snapshot", "x", {"--python": None, "--no-smoke": False, "--plugin": []}, why="")
    with pytest.raises(UsageError, match="--replicas cannot be used with --snapshot"):
        refuse_with("--snapshot", "x", {"--python": None, "--replicas": 0}, why="")
