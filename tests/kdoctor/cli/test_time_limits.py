"""Time limits that no timer of the system takes are refused before anything runs."""

import pytest

from kdoctor.cli import main

COMMANDS = (
    ("check", "--timeout"),
    ("check", "--model-timeout"),
    ("smoke", "--timeout"),
    ("smoke", "--case-timeout"),
    ("snapshot", "--timeout"),
    ("diagnose", "x.log", "--timeout"),
    ("rollback", "--timeout"),
    ("checklist", "record", "--timeout"),
    ("fleet", "run", "--engine", "ssh", "--nodes", "a", "--timeout"),
    ("fleet", "run", "--engine", "ssh", "--nodes", "a", "--node-timeout"),
    ("fleet", "run", "--engine", "ssh", "--nodes", "a", "--pair-timeout"),
)


@pytest.mark.parametrize("limit", ["inf", "1e400", "1e30", "nan", "-1", "0"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_limit_that_is_not_a_time_is_refused(
    command: tuple[str, ...], limit: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["kdoctor", *command, limit])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "timeout" in capsys.readouterr().err
