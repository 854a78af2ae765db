"""The limits of the checks of the host, and the numbers that they state."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import GIB, MIB, gpu, gpus, host, log, lost_gpu
from helpers.saying import briefs, said
from kdoctor.check import Check
from kdoctor.engine.report import Result
from kdoctor.facts import Disk, KernelLogEvent, ResourceLimit
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.host.cpu_governor import cpu_governor
from kdoctor_checks.host.cpus import cpus
from kdoctor_checks.host.disk import disk
from kdoctor_checks.host.huge_pages import huge_pages
from kdoctor_checks.host.kernel_errors import kernel_errors
from kdoctor_checks.host.locked_memory import locked_memory
from kdoctor_checks.host.memory import memory
from kdoctor_checks.host.open_files import open_files
from kdoctor_checks.host.shared_memory import shared_memory
from kdoctor_checks.host.swap import swap


def limit(name: Any, soft: int | None, hard: int | None = None) -> dict[str, Any]:
    return {"limits": (ResourceLimit(name=name, soft=soft, hard=hard),)}


def disks(free: int, temporary: int = 50 * GIB) -> dict[str, Any]:
    working = Disk(folder="working folder", total_bytes=100 * GIB, free_bytes=free)
    return {"disks": (working, Disk(folder="temporary folder", total_bytes=100 * GIB, free_bytes=temporary))}


FULL, AVAILABLE = "memory_total_bytes", "memory_available_bytes"
FEW = {FULL: 16 * GIB}
MANY = {FULL: 1000 * GIB}


@pytest.mark.parametrize(
    ("check", "changes", "status", "stated"),
    [
        (memory, {**FEW, AVAILABLE: 2 * GIB}, Status.PASS, "2048 MiB of 16.0 GiB available"),
        (memory, {**FEW, AVAILABLE: 2 * GIB - MIB}, Status.FAIL, "2047 MiB of 16.0 GiB available"),
        (memory, {**MANY, AVAILABLE: 50 * GIB}, Status.PASS, "50.0 GiB of 1000.0 GiB available"),
        (memory, {**MANY, AVAILABLE: 49 * GIB}, Status.FAIL, "49.0 GiB of 1000.0 GiB available"),
        (swap, {**MANY, "swap_used_bytes": 100 * GIB}, Status.PASS, "100.0 GiB of 8192 MiB used"),
        (swap, {**MANY, "swap_used_bytes": 101 * GIB}, Status.FAIL, "101.0 GiB of 8192 MiB used"),
        (swap, {"swap_used_bytes": None}, Status.UNKNOWN, "its size or used amount was not read"),
        (disk, disks(2 * GIB), Status.PASS, "2048 MiB of 100.0 GiB free"),
        (disk, disks(2 * GIB - MIB), Status.FAIL, "2047 MiB of 100.0 GiB free"),
        (disk, {"disks": ()}, Status.UNKNOWN, "its file system was not read, or did not respond in time"),
        (open_files, limit("nofile", 4096), Status.PASS, "4096"),
        (open_files, limit("nofile", None), Status.PASS, "unlimited"),
        (open_files, limit("nofile", 4095), Status.FAIL, "4095 (hard limit unlimited)"),
        (open_files, limit("nofile", 1024, 2048), Status.FAIL, "1024 (hard limit 2048)"),
        (locked_memory, limit("memlock", None), Status.PASS, "unlimited"),
        (locked_memory, limit("memlock", 64 * 1024), Status.FAIL, "64 KiB"),
        (locked_memory, limit("nofile", 1), Status.UNKNOWN, "the limit was not read"),
        (shared_memory, {"shm_total_bytes": GIB, "shm_free_bytes": 256 * MIB}, Status.PASS,
         "1024 MiB total, 256 MiB free"),
        (shared_memory, {"shm_total_bytes": GIB - MIB, "shm_free_bytes": 256 * MIB}, Status.FAIL,
         "1023 MiB total, 256 MiB free"),
        (shared_memory, {"shm_total_bytes": GIB, "shm_free_bytes": 255 * MIB}, Status.FAIL,
         "1024 MiB total, 255 MiB free"),
        (shared_memory, {"os": "Darwin"}, Status.UNKNOWN, "Darwin has no /dev/shm"),
        (huge_pages, {"transparent_hugepages": "always"}, Status.PASS, "always"),
        (huge_pages, {"transparent_hugepages": "never"}, Status.FAIL, "never"),
        (cpu_governor, {"cpu_governors": ("performance", "powersave")}, Status.FAIL, "performance, powersave"),
        (cpu_governor, {"cpu_governors": ("schedutil", "performance")}, Status.PASS, "schedutil, performance"),
    ],
)  # fmt: skip
def test_host_is_judged_by_its_numbers(check: Check, changes: dict[str, Any], status: Status, stated: str) -> None:
    result = compute_check(check, host(**changes))
    assert result.status is status
    assert next(iter(said(result).values())) == stated


@pytest.mark.parametrize(
    ("check", "changes", "parameters", "expected", "command", "back"),
    [
        (open_files, limit("nofile", 1024), {}, "at least 4096", "ulimit -n 4096", "ulimit -n 1024"),
        (open_files, limit("nofile", 1024, 4096), {}, "at least 4096", "ulimit -n 4096", "ulimit -n 1024"),
        (open_files, limit("nofile", 1024, 4095), {"least": 4096}, "at least 4096",
         "sudo prlimit --pid $$ --nofile=4096:4096", "ulimit -n 1024"),
        (locked_memory, limit("memlock", 65536), {"least_mib": 64}, "unlimited, or at least 64 MiB",
         "ulimit -l unlimited", "ulimit -l 64"),
        (locked_memory, limit("memlock", 65536, 65536), {}, "",
         "sudo prlimit --pid $$ --memlock=unlimited", "ulimit -l 64"),
        (huge_pages, {"transparent_hugepages": "never"}, {}, "always or madvise",
         "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
         "echo never | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"),
        (cpu_governor, {"cpu_governors": ("performance", "powersave")}, {}, "not powersave or conservative",
         "sudo cpupower frequency-set -g performance", "sudo cpupower frequency-set -g powersave"),
        (shared_memory, {"shm_total_bytes": 64 * MIB, "shm_free_bytes": 64 * MIB}, {},
         "at least 1 GiB total, 256 MiB free", "sudo mount -o remount,size=8g /dev/shm",
         "sudo mount -o remount,size=65536k /dev/shm"),
    ],
)  # fmt: skip
def test_fix_of_the_host_can_be_undone(  # noqa: PLR0917 - a table
    check: Check, changes: dict[str, Any], parameters: dict[str, Any], expected: str, command: str, back: str
) -> None:
    (found,) = compute_check(check, host(**changes), **parameters).findings
    assert found.finding.expected.startswith(expected)
    assert found.finding.remedy.commands == (command,)
    assert found.finding.rollback.commands == (back,)


@pytest.mark.parametrize(
    ("check", "changes", "expected"),
    [
        (memory, {**FEW, AVAILABLE: GIB}, "at least 2048 MiB"),
        (memory, {**MANY, AVAILABLE: GIB}, "at least 50.0 GiB"),
        (swap, {**MANY, "swap_used_bytes": 101 * GIB}, "at most 100.0 GiB"),
        (disk, disks(GIB), "at least 2 GiB free"),
    ],
)
def test_limit_of_the_host_is_stated(check: Check, changes: dict[str, Any], expected: str) -> None:
    assert compute_check(check, host(**changes)).findings[0].finding.expected == expected


def test_container_is_started_with_more_shared_memory() -> None:
    small = {"shm_total_bytes": 64 * MIB, "shm_free_bytes": 64 * MIB, "container": "docker"}

    def command(**changes: Any) -> str:
        return compute_check(shared_memory, host(**small, **changes)).findings[0].finding.remedy.commands[0]

    assert command(image="job:1") == "docker run --shm-size=1g --ulimit memlock=-1 job:1 '<command>'"
    assert command() == "docker run --shm-size=1g --ulimit memlock=-1 '<image>' '<command>'"


def test_both_folders_are_judged() -> None:
    result = compute_check(disk, host(**disks(100 * GIB, GIB)))
    assert said(result) == {
        "temporary folder": "1024 MiB of 100.0 GiB free",
        "working folder": "100.0 GiB of 100.0 GiB free",
    }
    (found,) = result.findings
    assert found.finding.remedy.look[0] == 'df -h "${TMPDIR:-/tmp}"'
    assert compute_check(disk, host(**disks(GIB))).findings[0].finding.remedy.look[0] == "df -h ."
    assert [bool(brief) for brief in briefs(compute_check(disk, host()))] == [True, False]


def usable(number: int, quota: float | None, **parameters: Any) -> Result:
    affinity = tuple(range(number)) if number else None
    return compute_check(cpus, host(cpu_affinity=affinity, cpu_limit=quota), gpus(2), **parameters)


@pytest.mark.parametrize(
    ("number", "quota", "status", "stated"),
    [
        (8, 224.0, Status.PASS, "8 available for 2 GPUs (affinity 8, limit 224)"),
        (224, 3.5, Status.FAIL, "3.5 available for 2 GPUs (affinity 224, limit 3.5)"),
        (4, 224.0, Status.PASS, "4 available for 2 GPUs (affinity 4, limit 224)"),
        (3, 224.0, Status.FAIL, "3 available for 2 GPUs (affinity 3, limit 224)"),
        (0, 4.0, Status.UNKNOWN, "the affinity mask was not read"),
        (4, None, Status.UNKNOWN, "the limit of the control groups was not read"),
    ],
)
def test_cpus_are_compared_with_the_gpus(number: int, quota: float | None, status: Status, stated: str) -> None:
    result = usable(number, quota, least_per_gpu=2)
    assert (result.status, list(said(result).values())) == (status, [stated])
    for judged in result.findings:
        assert judged.finding.expected == "at least 4"


def test_cpus_of_gpus_that_do_not_respond_are_unknown() -> None:
    assert compute_check(cpus, host(), gpus(1, lost_gpu(0))).status is Status.UNKNOWN
    one = compute_check(cpus, host(cpu_affinity=(0,)), gpus(1, gpu(0)), least_per_gpu=1)
    assert briefs(one) == ["1 CPU"]
    assert briefs(usable(8, 224.0, least_per_gpu=4)) == ["8 CPUs"]


def event(kind: Any, times: int = 1) -> KernelLogEvent:
    return KernelLogEvent(kind=kind, text="a line", times=times)


@pytest.mark.parametrize(
    ("events", "status", "stated", "brief"),
    [
        ((), Status.PASS, "no hardware error and no crash in 2048 lines of /dev/kmsg", ""),
        (
            (event("hardware-corrected", 10),),
            Status.PASS,
            "10 corrected hardware errors in 2048 lines of /dev/kmsg",
            "",
        ),
        (
            (event("hardware-corrected", 11),),
            Status.FAIL,
            "corrected hardware error x11; last line: 'a line'",
            "many corrected hardware errors",
        ),
        (
            (event("crash"), event("hardware-corrected")),
            Status.FAIL,
            "kernel panic, oops or lockup; last line: 'a line'",
            "kernel panic, oops or lockup",
        ),
        (
            (event("crash"), event("hardware-error"), event("hardware-corrected", 11)),
            Status.FAIL,
            "kernel panic, oops or lockup, uncorrected hardware error, corrected hardware error x11; last line: 'a line'",  # noqa: E501 - as it is
            "a crash and hardware errors",
        ),
    ],
)
def test_errors_of_the_machine_are_counted(
    events: tuple[KernelLogEvent, ...], status: Status, stated: str, brief: str
) -> None:
    result = compute_check(kernel_errors, log(*events))
    assert (result.status, said(result)) == (status, {"kernel log": stated})
    assert briefs(result) == [brief]
