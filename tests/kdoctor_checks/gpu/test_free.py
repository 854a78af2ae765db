from __future__ import annotations

from typing import Any

from helpers.facts import GIB, MIB, gpu, gpus, lost_gpu
from kdoctor.engine.report import Result
from kdoctor.facts import Gpu, GpuProcess
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.free import free


def judged(*devices: Gpu, **parameters: Any) -> Result:
    return compute_check(free, gpus(len(devices), *devices), **parameters)


def test_free_gpus_pass() -> None:
    result = compute_check(free, gpus(2))
    assert result.status is Status.PASS
    assert result.evidence[0].observed.startswith("4 MiB of 79.6 GiB")


def test_process_is_named_with_its_memory() -> None:
    held = (GpuProcess(pid=4711, used_memory_bytes=30 * GIB), GpuProcess(pid=4712, used_memory_bytes=None))
    result = judged(gpu(0, memory_used_bytes=31 * GIB, processes=held))
    assert result.status is Status.FAIL
    finding = result.findings[0].finding
    assert finding.observed.startswith("31.0 GiB of 79.6 GiB")
    assert finding.observed.endswith("4711 (30.0 GiB), 4712")
    assert finding.remedy.look[-1] == "ps -o pid,user,lstart,args -p 4711,4712"
    assert finding.remedy.commands == ()
    assert finding.rollback.kind == "irreversible"


def test_memory_of_hidden_process_fails() -> None:
    assert judged(gpu(0, memory_used_bytes=1024 * MIB)).status is Status.PASS
    assert judged(gpu(0, memory_used_bytes=1024 * MIB + 1)).status is Status.FAIL
    assert judged(gpu(0, memory_used_bytes=2048 * MIB), max_used_mib=4096).status is Status.PASS


def test_small_process_fails_unless_checklist_allows_it() -> None:
    small = gpu(0, processes=(GpuProcess(pid=1, used_memory_bytes=30 * MIB),))
    assert judged(small).status is Status.FAIL
    assert judged(small, allow_processes=True).status is Status.PASS


def test_lost_gpu_is_unknown_and_the_others_are_judged() -> None:
    result = judged(gpu(0), lost_gpu(1))
    assert [item.subject[:5] for item in result.unjudged] == ["GPU 1"]
    assert [item.subject[:5] for item in result.evidence] == ["GPU 0"]


def test_gpus_next_to_an_unread_one_are_judged() -> None:
    result = judged(gpu(0, memory_used_bytes=None), gpu(1))
    assert result.status is Status.UNKNOWN
    assert [item.subject[:5] for item in result.unjudged] == ["GPU 0"]
    assert [item.subject[:5] for item in result.evidence] == ["GPU 1"]


def test_unread_value_is_unknown_unless_another_one_fails() -> None:
    busy = (GpuProcess(pid=1, used_memory_bytes=None),)
    assert judged(gpu(0, processes=None)).status is Status.UNKNOWN
    assert judged(gpu(0, memory_used_bytes=None)).status is Status.UNKNOWN
    assert judged(gpu(0, memory_used_bytes=None, processes=busy)).status is Status.FAIL
    assert judged(gpu(0, memory_used_bytes=40 * GIB, processes=None)).status is Status.FAIL
    assert compute_check(free, gpus(0)).status is Status.SKIP


def test_busy_gpu_does_not_hide_others() -> None:
    result = compute_check(free, gpus(3, gpu(0), gpu(1, memory_used_bytes=40 * GIB), gpu(2)))
    assert [item.finding.subject for item in result.findings] == ["GPU 1 (0000:20:00.0)"]
    assert len(result.evidence) == 2


def test_gpus_in_use_share_headline_and_commands() -> None:
    def busy(index: int, pid: int, used: int) -> Gpu:
        held = (GpuProcess(pid=pid, used_memory_bytes=used),)
        return gpu(index, memory_used_bytes=used, processes=held)

    result = judged(busy(0, 11, 30 * GIB), busy(1, 11, 20 * GIB))
    assert {item.finding.headline for item in result.findings} == {"in use by process 11 (20.0 GiB to 30.0 GiB used)"}
    result = judged(busy(0, 11, 30 * GIB), busy(1, 12, 30 * GIB), gpu(2))
    assert {item.finding.headline for item in result.findings} == {"in use by 2 processes (30.0 GiB used)"}
    assert {item.finding.remedy.look[-1] for item in result.findings} == {"ps -o pid,user,lstart,args -p 11,12"}


def test_value_names_no_gpu_with_an_allowed_process() -> None:
    held = (GpuProcess(pid=11, used_memory_bytes=0),)
    result = judged(gpu(0), gpu(1, processes=held), allow_processes=True)
    assert [item.brief for item in result.evidence] == ["all free", ""]


DESKTOP = (GpuProcess(pid=1900, used_memory_bytes=None, name="/usr/lib/xorg/Xorg"),)


def test_desktop_may_use_a_share_of_the_memory() -> None:
    card = gpu(0, memory_total_bytes=10 * GIB, memory_used_bytes=2 * GIB, graphics_processes=DESKTOP)
    assert "Xorg" in judged(card).evidence[0].observed
    full = gpu(0, memory_total_bytes=10 * GIB, memory_used_bytes=4 * GIB, graphics_processes=DESKTOP)
    finding = judged(full).findings[0].finding
    assert "desktop" in finding.headline
    assert judged(full, max_desktop_share=0.5).status is Status.PASS


def test_memory_next_to_a_compute_process_is_not_a_desktop() -> None:
    both = gpu(
        0,
        memory_used_bytes=2 * GIB,
        graphics_processes=DESKTOP,
        processes=(GpuProcess(pid=5, used_memory_bytes=GIB),),
    )
    assert "process 5" in judged(both).findings[0].finding.headline


def test_unread_processes_are_not_called_absent() -> None:
    finding = judged(gpu(0, memory_used_bytes=4 * GIB, processes=None)).findings[0].finding
    assert "listed" not in finding.headline


def test_headline_of_several_gpus_says_who_may_hold_their_memory() -> None:
    full: dict[str, Any] = {"memory_used_bytes": 40 * GIB}
    desktop = judged(gpu(0, graphics_processes=DESKTOP, **full), gpu(1, **full))
    assert {item.finding.headline for item in desktop.findings} == {"in use by a desktop (40.0 GiB used)"}
    unread = judged(gpu(0, processes=None, **full), gpu(1, **full))
    assert {item.finding.headline for item in unread.findings} == {"memory in use (40.0 GiB used)"}
    listed = judged(gpu(0, **full), gpu(1, **full))
    assert {item.finding.headline for item in listed.findings} == {
        "memory in use, no compute process listed (40.0 GiB used)"
    }
