"""The prolog in a real Slurm of one node: the state of the job and the node, and the messages in both."""

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.checklist_texts import untrained
from helpers.command import make_target
from helpers.integrations import FOLDER, KDOCTOR, needs
from helpers.kdoctor_fleet.slurm import PROGRAMS, Slurm, slurm_folder

pytestmark = [pytest.mark.services, *needs(*PROGRAMS)]


class Prologued(Slurm):
    """A Slurm of one node with a prolog and a health check."""

    def accept(
        self,
        *,
        python: Path | None = None,
        check: str = "versions.tensorflow-installed",
        kdoctor: Path = KDOCTOR,
        patient: bool = True,
    ) -> None:
        """Install the documented scripts with adapted paths, or scripts that accept everything.

        With ``patient``, a machine that is busy with tests may take longer than a prolog may.
        """
        checklist = self.folder / "node.yaml"
        checklist.write_text(untrained(f"{check}, severity: error"), encoding="utf-8")
        for name in ("prolog.sh", "health.sh"):
            text = "#!/bin/sh\nexit 0\n"
            if python is not None:
                text = (FOLDER / f"slurm-{name}").read_text(encoding="utf-8")
                for documented, adapted in {
                    "/opt/kdoctor/bin/kdoctor": str(kdoctor), "/opt/job": str(python),
                    "multi-gpu-keras": str(checklist), "logger --tag": f"{self.folder}/logger --tag",
                }.items():  # fmt: skip
                    assert documented in text
                    text = text.replace(documented, adapted)
                if patient:
                    text = text.replace("--timeout 8", "--timeout 60").replace("--kill-after=1 9", "--kill-after=1 70")
            temporary = self.folder / f"{name}.new"
            temporary.write_text(text, encoding="utf-8")
            temporary.chmod(0o755)
            temporary.replace(self.folder / name)  # slurmd may be running it
        logger = self.folder / "logger"
        logger.write_text(f'#!/bin/sh\nshift 2\necho "$@" >> {self.folder}/syslog\n', encoding="utf-8")
        logger.chmod(0o755)

    def health(self) -> None:
        """Run the health check once, as slurmd does."""
        subprocess.run([self.folder / "health.sh"], check=True, env={**self.env, "SLURMD_NODENAME": self.node})

    def syslog(self) -> str:
        return (self.folder / "syslog").read_text()


@pytest.fixture
def slurm() -> Iterator[Prologued]:
    with slurm_folder() as folder:
        cluster = Prologued(folder, settings={"Prolog": folder / "prolog.sh", "PrologFlags": "Alloc"})
        try:
            cluster.accept()
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


def test_passing_run_starts_the_job(slurm: Prologued, tmp_path: Path) -> None:
    slurm.accept(python=make_target(tmp_path / "job", tensorflow=""))
    assert slurm.ran(slurm.submit())
    assert slurm.state() in ("idle", "alloc", "comp")
    assert "exit code 0: kdoctor READY in " in slurm.syslog()


def test_failed_run_drains_the_node_and_requeues_the_job(slurm: Prologued, tmp_path: Path) -> None:
    slurm.accept(python=make_target(tmp_path / "job"))
    job = slurm.submit()
    slurm.until(lambda: slurm.state().startswith("drain"))
    assert not (slurm.folder / "job.out").exists()
    assert slurm.reason(slurm.node) == "Prolog error"
    assert re.search(rf"job {job}, exit code 1: kdoctor NOT READY in .*versions.tensorflow-installed", slurm.syslog())
    slurm.ask("scontrol", "update", f"nodename={slurm.node}", "state=resume")
    assert slurm.state() == "idle"


def test_prolog_ends_within_ten_seconds_and_calls_no_program_of_slurm(slurm: Prologued, tmp_path: Path) -> None:
    slow = tmp_path / "kdoctor"
    slow.write_text("#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1; done\n")
    slow.chmod(0o755)
    slurm.accept(python=make_target(tmp_path / "job"), kdoctor=slow, patient=False)
    started = time.monotonic()
    done = subprocess.run([slurm.folder / "prolog.sh"], check=False, env={"SLURM_JOB_ID": "7"})
    assert done.returncode == 0
    assert time.monotonic() - started < 11
    assert "job 7, exit code 137" in slurm.syslog()
    text = (FOLDER / "slurm-prolog.sh").read_text()
    assert not re.search(r"^[^#]*\b(scontrol|sinfo|squeue|sacct)\b", text, re.MULTILINE)


def test_inconclusive_or_impossible_run_is_logged_and_starts_the_job(slurm: Prologued, tmp_path: Path) -> None:
    python = make_target(tmp_path / "job", tensorflow="")
    for code, given in (
        (3, {"check": "topology.pcie-errors"}),  # unknown without GPUs
        (2, {"check": "no.such-check"}),
        (127, {"kdoctor": tmp_path / "none"}),
    ):
        slurm.accept(python=python, **given)
        (slurm.folder / "job.out").unlink(missing_ok=True)
        assert slurm.ran(slurm.submit())
        assert f"exit code {code}: " in slurm.syslog().splitlines()[-1]
    assert slurm.state() in ("idle", "alloc", "comp")


def test_health_check_takes_back_only_what_it_drained(slurm: Prologued, tmp_path: Path) -> None:
    good, bad = make_target(tmp_path / "good", tensorflow=""), make_target(tmp_path / "bad")
    slurm.accept(python=bad)
    slurm.health()
    assert slurm.state().startswith("drain")
    assert slurm.reason(slurm.node).startswith("kdoctor-health: kdoctor NOT READY in ")
    slurm.accept(python=good)
    slurm.health()
    assert slurm.state() == "idle"
    for reason in ("bad fan", "kdoctor: GPU 3 has fallen off the bus"):
        slurm.ask("scontrol", "update", f"nodename={slurm.node}", "state=drain", f"reason={reason}")
        slurm.health()
        assert slurm.reason(slurm.node) == reason
        slurm.ask("scontrol", "update", f"nodename={slurm.node}", "state=resume")


def test_inconclusive_health_check_changes_nothing(slurm: Prologued, tmp_path: Path) -> None:
    python = make_target(tmp_path / "job", tensorflow="")
    slurm.accept(python=python, check="topology.pcie-errors")  # unknown without GPUs
    slurm.health()
    assert slurm.state() == "idle"
    slurm.ask("scontrol", "update", f"nodename={slurm.node}", "state=drain", "reason=kdoctor-health: GPU 3")
    slurm.health()
    assert slurm.reason(slurm.node) == "kdoctor-health: GPU 3"
    assert "health check, exit code 3: " in slurm.syslog()
