from collections.abc import Sequence
from pathlib import Path

import pytest

from helpers.locks import lock
from kdoctor.errors import UsageError
from kdoctor.lock.document import Lock
from kdoctor.probes.process.child import ChildEnd
from kdoctor.rollback.packages import pins
from kdoctor.rollback.rebuild import RebuildError, base_python, rebuild


def end(status: int = 0, **changes: object) -> ChildEnd:
    values = {"signal": None, "timed_out": False, "records": (), "chatter": "", "stderr": "", "seconds": 9.0}
    return ChildEnd(exit_code=status, **{**values, **changes})  # type: ignore[arg-type]


def without(section: str) -> Lock:
    whole = lock()
    return whole.model_copy(update={"facts": {name: facts for name, facts in whole.facts.items() if name != section}})


def test_interpreter_of_the_recorded_minor_release_is_taken() -> None:
    assert base_python(lock(), "/opt/python", "3.11.2", {}) == "/opt/python"


def test_another_interpreter_is_searched(tmp_path: Path) -> None:
    with pytest.raises(RebuildError, match=r"3\.11\.7.*python3\.11 "):
        base_python(lock(), "/opt/python", "3.12.2", {"PATH": str(tmp_path)})
    other = tmp_path / "python3.11"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    assert base_python(lock(), "/opt/python", "3.12.2", {"PATH": str(tmp_path)}) == str(other)


@pytest.mark.parametrize("section", ["python", "packages"])
def test_lock_without_python_or_packages_is_refused(section: str) -> None:
    with pytest.raises(UsageError):
        base_python(without(section), "/opt/python", "3.11.2", {})


def test_recorded_packages_are_installed_without_their_dependencies(tmp_path: Path) -> None:
    calls: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> ChildEnd:
        calls.append(command)
        return end()

    made = rebuild(lock(), "/opt/python", tmp_path, run)
    assert made == str(tmp_path / "bin" / "python")
    assert calls[0] == ["/opt/python", "-m", "venv", str(tmp_path)]
    assert calls[1][:4] == [made, "-m", "pip", "install"]
    assert "--no-deps" in calls[1]
    listed = Path(calls[1][-1]).read_text()
    assert calls[1][-2] == "-r"
    assert listed.splitlines() == pins(lock())
    assert "keras==3.15.1" in listed


@pytest.mark.parametrize("failing", [0, 1])
def test_failed_step_is_reported_with_its_last_lines(failing: int, tmp_path: Path) -> None:
    lines = "".join(f"line {number}\n\n" for number in range(20))
    ends = [end(), end()]
    ends[failing] = end(7, stderr=lines, chatter="other")
    with pytest.raises(RebuildError) as caught:
        rebuild(lock(), "/opt/python", tmp_path, lambda _: ends.pop(0))
    first, *rest = str(caught.value).splitlines()
    assert first.endswith("status 7")
    assert rest == [f"line {number}" for number in range(8, 20)]
    assert len(ends) == 1 - failing


def test_output_is_shown_if_the_installer_wrote_no_errors(tmp_path: Path) -> None:
    with pytest.raises(RebuildError, match="no space left"):
        rebuild(lock(), "/opt/python", tmp_path, lambda _: end(1, chatter="no space left\n"))


def test_timeout_is_reported_with_its_seconds(tmp_path: Path) -> None:
    with pytest.raises(RebuildError, match="9 s"):
        rebuild(lock(), "/opt/python", tmp_path, lambda _: end(1, timed_out=True))
