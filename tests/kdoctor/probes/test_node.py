import platform
from dataclasses import replace
from pathlib import Path

from helpers.cases import cases
from helpers.machine import context
from kdoctor.facts import Node
from kdoctor.probes.node import collect


def node(tmp_path: Path, **environ: str) -> Node:
    found = collect(replace(context(tmp_path), environ=environ))[Node]
    assert isinstance(found, Node)
    return found


@cases(
    ({"SLURMD_NODENAME": "node07", "NODE_NAME": "gke-1"}, "SLURMD_NODENAME", "node07"),
    ({"KDOCTOR_NODE": "algo-1", "SLURMD_NODENAME": "node07"}, "KDOCTOR_NODE", "algo-1"),
    ({"NODE_NAME": "gke-1"}, "NODE_NAME", "gke-1"),
    ({}, "host name", platform.node()),
)
def test_name_is_that_of_the_scheduler_or_the_host(
    tmp_path: Path, environ: dict[str, str], named_by: str, name: str
) -> None:
    found = node(tmp_path, **environ)
    assert (found.name, found.named_by) == (name, named_by)


@cases(
    ({"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "42", "PMI_RANK": "3"}, ("slurm", "42", 3, 8)),
    ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "SLURM_PROCID": "0"}, ("open-mpi", None, 2, 4)),
    ({"PMI_RANK": "1", "PMI_SIZE": "2"}, ("mpich", None, 1, 2)),
    ({"JOB_COMPLETION_INDEX": "5"}, ("kubernetes", None, 5, None)),
    ({"RANK": "0", "WORLD_SIZE": "16"}, ("torchrun", None, 0, 16)),
    ({"RANK": "first"}, (None, None, None, None)),
    ({}, (None, None, None, None)),
)
def test_rank_is_that_of_the_launcher(tmp_path: Path, environ: dict[str, str], expected: tuple[object, ...]) -> None:
    found = node(tmp_path, **environ)
    assert (found.launcher, found.job, found.rank, found.ranks) == expected


def test_tf_config_is_recorded_without_secrets(tmp_path: Path) -> None:
    text = '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}, "token": "abc"}'
    recorded = node(tmp_path, TF_CONFIG=text).tf_config or ""
    assert "abc" not in recorded
    assert '"a:1"' in recorded
