import os
import platform
import sys
from pathlib import Path

import psutil
import pytest

from helpers.cases import cases
from helpers.machine import context, write
from kdoctor.facts import Host
from kdoctor.probes.host import collect


def read(root: Path) -> Host:
    facts = collect(context(root))[Host]
    assert isinstance(facts, Host)
    return facts


def test_system_cpus_and_memory_are_read() -> None:
    facts = read(Path("/"))
    assert (facts.os, facts.kernel, facts.machine) == (platform.system(), platform.release(), platform.machine())
    assert facts.cpus == os.cpu_count()
    assert facts.memory_total_bytes
    assert facts.memory_total_bytes <= psutil.virtual_memory().total


@pytest.mark.skipif(sys.platform != "linux", reason="Linux' own facts")
def test_linux_affinity_and_limits_are_read() -> None:
    facts = read(Path("/"))
    assert facts.cpu_affinity == tuple(sorted(os.sched_getaffinity(0)))
    limits = {limit.name: limit for limit in facts.limits}
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert (limits["nofile"].soft, limits["nofile"].hard) == (soft, hard)


def test_empty_root_leaves_fields_unknown(tmp_path: Path) -> None:
    facts = read(tmp_path)
    assert (facts.shm_total_bytes, facts.shm_free_bytes, facts.container) == (None, None, None)


def test_distribution_name_is_read_from_os_release(tmp_path: Path) -> None:
    write(tmp_path, **{"etc__os-release": 'ID=debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'})
    assert read(tmp_path).os_release == "Debian GNU/Linux 12 (bookworm)"


@cases(
    ("sys__fs__cgroup__memory.max", "sys__fs__cgroup__memory.current"),
    ("sys__fs__cgroup__memory__memory.limit_in_bytes", "sys__fs__cgroup__memory__memory.usage_in_bytes"),
)
def test_cgroup_memory_limit_applies(tmp_path: Path, limit: str, use: str) -> None:
    write(tmp_path, **{limit: f"{64 * 1024**2}\n", use: f"{24 * 1024**2}\n"})
    facts = read(tmp_path)
    assert (facts.memory_total_bytes, facts.memory_available_bytes) == (64 * 1024**2, 40 * 1024**2)
    write(tmp_path, proc__meminfo="MemTotal: 99999 kB\nMemAvailable: 1024 kB\n")  # other groups use the rest
    assert read(tmp_path).memory_available_bytes == 1024**2


@pytest.mark.parametrize("limit", ["max", str(2**63 - 4096)])
def test_memory_without_cgroup_limit_is_the_machines(tmp_path: Path, limit: str) -> None:
    write(tmp_path, **{"sys__fs__cgroup__memory.max": f"{limit}\n"})
    assert read(tmp_path).memory_total_bytes == psutil.virtual_memory().total
