"""`kdoctor fleet run --engine slurm` and the recipes, in a real Slurm with a slurmd for each node."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.command import KDOCTOR, kdoctor
from helpers.integrations import FOLDER, needs
from helpers.kdoctor_fleet.connecting_nodes import write_connecting_nodes
from helpers.kdoctor_fleet.faulty_nodes import NODES, assert_judged, interrupt, write_nodes
from helpers.kdoctor_fleet.slurm import PROGRAMS, Slurm, slurm_folder

pytestmark = [pytest.mark.fleet, *needs(*PROGRAMS)]

KINDS = {f"node{index}": kind for index, kind in enumerate((*NODES, "healthy", "healthy", "healthy"), 1)}


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    with slurm_folder() as folder:
        cluster = Slurm(folder, nodes=len(KINDS))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


@pytest.fixture
def program(slurm: Slurm, tmp_path: Path) -> Path:
    return write_nodes(tmp_path, KINDS)


def run(slurm: Slurm, program: Path, *arguments: str | Path) -> Any:
    common = ("--engine", "slurm", "--kdoctor", program, "--reports", "r", "-f", "json")
    done = kdoctor("fleet", "run", *common, *arguments, cwd=program.parent, variables=slurm.env)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def idle(slurm: Slurm) -> None:
    slurm.until(lambda: slurm.ask("squeue", "--noheader") == "" and set(slurm.states()) == {"idle"})


def test_every_fault_is_named_outside_an_allocation(slurm: Slurm, program: Path) -> None:
    document = run(slurm, program, "--nodes", f"node[1-{len(KINDS)}]", "--node-timeout", "15")
    assert_judged(document, KINDS)
    words = next(item for item in document["exclusions"] if item["engine"] == "slurm")
    assert words["leave_out"][0].startswith("sbatch '--exclude=node[")
    idle(slurm)


def test_every_fault_is_named_inside_an_allocation(slurm: Slurm, program: Path) -> None:
    words = [
        *KDOCTOR, "fleet", "run", "--engine", "slurm", "--kdoctor", str(program), "--node-timeout", "15",
        "--reports", str(program.parent / "r"), "--output", f"json={program.parent}/fleet.json",
    ]  # fmt: skip
    slurm.submit(f"cd {program.parent} && {shlex.join(words)} || true", f"--nodes={len(KINDS)}")
    idle(slurm)
    document = json.loads((program.parent / "fleet.json").read_text())
    assert_judged(document, KINDS)


def test_busy_and_unknown_nodes_are_silent_with_the_words_of_srun(slurm: Slurm, program: Path) -> None:
    job = slurm.submit("sleep 60", "--nodelist=node16")
    slurm.until(lambda: slurm.ask("squeue", "--noheader", "--format=%T") == "RUNNING")
    document = run(slurm, program, "-w", "node1,node16,node99", "--engine-option=--immediate=1")
    reasons = {node["name"]: node["reason"] for node in document["nodes"] if node["state"] == "silent"}
    assert document["passing"] == ["node1"]
    assert "srun: error:" in reasons["node16"]
    assert "node99" in reasons["node99"] or "Invalid node name" in reasons["node99"]
    slurm.ask("scancel", job)
    idle(slurm)


def test_pairs_name_the_node_that_hangs_in_a_training(slurm: Slurm, tmp_path: Path) -> None:
    nodes = [f"node{index}" for index in range(1, 6)]
    program = write_connecting_nodes(tmp_path, nodes, hangs=["node4"])
    document = run(slurm, program, "-w", "node[1-5]", "--pairs", "--node-timeout", "20")
    assert document["passing"] == ["node1", "node2", "node3", "node5"], document["nodes"]
    (bad,) = (node for node in document["nodes"] if node["state"] != "passed")
    assert {problem["check"] for problem in bad["problems"]} == {"cluster.pairs"}
    idle(slurm)


def test_interrupted_controller_leaves_no_job_and_resumes(slurm: Slurm, program: Path) -> None:
    folder = program.parent
    command = ("--engine", "slurm", "--kdoctor", program, "-w", "node[1,3,16]")
    interrupted = interrupt(folder, *command, variables=slurm.env)
    assert interrupted.returncode == 130, interrupted.stderr
    idle(slurm)
    write_nodes(folder, {"node3": "healthy"})
    again = ("--resume", "--reports", "r", "-f", "json")
    done = kdoctor("fleet", "run", *command, *again, cwd=folder, variables=slurm.env)
    assert json.loads(done.stdout)["passing"] == ["node1", "node16", "node3"]


def test_job_trains_on_the_nodes_that_passed(slurm: Slurm, tmp_path: Path) -> None:
    kinds = {"node1": "healthy", "node2": "absent", "node3": "healthy", "node4": "keras", "node5": "healthy"}
    program = write_nodes(tmp_path, kinds)
    kdoctor_ = tmp_path / "kdoctor-here"
    kdoctor_.write_text(f'#!/bin/sh\nexec {shlex.join(KDOCTOR)} "$@"\n')
    kdoctor_.chmod(0o755)
    text = (FOLDER / "slurm-job.sh").read_text()
    for documented, adapted in {
        "--nodes=10": "--nodes=5 --nodelist=node[1-5]", "#SBATCH --gpus-per-node=8\n": "", "NEEDED=8": "NEEDED=2",
        '"$KDOCTOR" fleet run': f"{kdoctor_} fleet run", "KDOCTOR=/opt/kdoctor/bin/kdoctor": f"KDOCTOR={program}",
        "/opt/job/bin/python": "/bin/echo", "SCRIPT=train.py": "SCRIPT=trained",
    }.items():  # fmt: skip
        assert documented in text
        text = text.replace(documented, adapted)
    script = tmp_path / "job.sh"
    script.write_text(text)
    job = slurm.ask("sbatch", "--parsable", f"--chdir={tmp_path}", f"--output={tmp_path}/out", str(script))
    slurm.until(lambda: "JobState=COMPLETED" in slurm.ask("scontrol", "show", "job", job))
    assert (tmp_path / "out").read_text().count("trained") == 2
    assert (tmp_path / f"kdoctor-{job}" / "passing.txt").read_text().split() == ["node1", "node3", "node5"]
