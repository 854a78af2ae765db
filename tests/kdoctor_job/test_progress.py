import time

import pytest

from kdoctor_job.preflight import told


def test_long_examination_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    found = {"phase": "build"}
    with told(found, quiet_s=0.01):
        deadline = time.monotonic() + 10
        while not (said := capsys.readouterr().err) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert said.startswith("kdoctor: ")
    assert "(build)" in said


def test_short_examination_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with told({"phase": "build"}):
        pass
    assert capsys.readouterr().err == ""
