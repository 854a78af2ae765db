import time

import pytest

from kdoctor_job.preflight import progress_lines


def test_long_examination_names_its_phase(capsys: pytest.CaptureFixture[str]) -> None:
    found = {"phase": "build"}
    with progress_lines(found, quiet_s=0.01):
        deadline = time.monotonic() + 10
        while not (written := capsys.readouterr().err) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert written.startswith("kdoctor: ")
    assert "(build)" in written


def test_short_examination_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_lines({"phase": "build"}):
        pass
    assert capsys.readouterr().err == ""
