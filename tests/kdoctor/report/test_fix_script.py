import subprocess
from pathlib import Path

from helpers.command import captured
from helpers.reports import complete, cpu_report, failure, finding, passing_report
from kdoctor.engine.report import Report
from kdoctor.model import Remedy, Severity
from kdoctor.report.formats import render


def fails(*commands: str, look: tuple[str, ...] = (), check: str = "host.disk") -> Report:
    remedy = Remedy.configure("Fix it.", *commands, look=look)
    return complete(cpu_report(), results=(failure(check, finding("disk", remedy=remedy)),))


def run(report: Report, folder: Path, *arguments: str, answer: str = "") -> subprocess.CompletedProcess[str]:
    script = folder / "fix.sh"
    script.write_text(render(report, "fix-script"), encoding="utf-8")
    return captured(["bash", str(script), *arguments], cwd=folder, input=answer, timeout=30)


def test_step_runs_after_its_confirmation_only(tmp_path: Path) -> None:
    report = fails("touch one", "touch 'a b'")
    for answer, found in (("n\n", set()), ("", set()), ("y\n", {"one", "a b"})):
        done = run(report, tmp_path, answer=answer)
        assert done.returncode == 0, done.stderr
        assert {path.name for path in tmp_path.iterdir()} - {"fix.sh"} == found


def test_yes_confirms_steps_without_root(tmp_path: Path) -> None:
    assert run(fails("touch one"), tmp_path, "--yes").returncode == 0
    assert (tmp_path / "one").exists()
    assert "sudo" in render(fails("sudo touch two"), "fix-script")
    assert run(fails("sudo touch two"), tmp_path, "--yes").returncode == 0  # without an answer
    assert not (tmp_path / "two").exists()


def test_failed_command_ends_the_script(tmp_path: Path) -> None:
    assert run(fails("false", "touch after"), tmp_path, "--yes").returncode != 0
    assert not (tmp_path / "after").exists()


def test_variables_are_written_to_a_file(tmp_path: Path) -> None:
    value = "export X='a\nEND_OF_VARIABLES\ntouch hacked'"
    done = run(fails(value, "unset Y"), tmp_path, "--yes")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "hacked").exists()
    shown = captured(["bash", "-c", '. ./kdoctor-fix.env; printf %s "$X"'], cwd=tmp_path, check=True)
    assert shown.stdout == "a\nEND_OF_VARIABLES\ntouch hacked"


def test_restart_and_placeholders_are_printed_and_not_run(tmp_path: Path) -> None:
    done = run(fails("sudo reboot", "docker run '<image>'"), tmp_path, "--yes")
    assert done.returncode == 0
    assert "sudo reboot" in done.stderr
    assert "docker run '<image>'" in done.stderr


def test_check_by_kdoctor_does_not_end_the_script(tmp_path: Path) -> None:
    """It fails where something else is left to fix."""
    for command in ("kdoctor check --gpus 1", "'my env/kdoctor' check", "/opt/a/python -m kdoctor smoke baseline"):
        done = run(fails(command, "touch after"), tmp_path, "--yes")
        assert (done.returncode, command in done.stderr) == (0, True)
        (tmp_path / "after").unlink()


def test_commands_that_only_read_are_comments(tmp_path: Path) -> None:
    done = run(fails("touch one", look=("touch read",)), tmp_path, "--yes")
    assert done.returncode == 0
    assert not (tmp_path / "read").exists()
    by_hand = run(fails(look=("touch read", "touch more")), tmp_path)
    assert "1. Fix it. To look first: touch read; touch more" in by_hand.stderr.splitlines()
    assert not (tmp_path / "read").exists()


def test_hostile_texts_run_nothing(tmp_path: Path) -> None:
    text = "x\ntouch hacked\n$(touch hacked) `touch hacked` '; touch hacked; '"
    remedy = Remedy.configure(text, "true", look=(text,))
    report = complete(cpu_report(), results=(failure("host.disk", finding(text, observed=text, remedy=remedy)),))
    assert run(report, tmp_path, "--yes").returncode == 0
    assert not (tmp_path / "hacked").exists()


def test_nothing_to_fix_is_said(tmp_path: Path) -> None:
    for report in (passing_report(), cpu_report(results=(failure("gpu.power-limit", severity=Severity.INFO),))):
        done = run(report, tmp_path)
        assert done.returncode == 0
        assert "Nothing to fix" in done.stderr


def test_last_line_is_the_command_that_checks_again(tmp_path: Path) -> None:
    assert "kdoctor check --checklist cpu-smoke" in run(cpu_report(), tmp_path).stderr.splitlines()[-1]
