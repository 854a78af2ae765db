from __future__ import annotations

from helpers.facts import gpu, gpus, log, logged
from kdoctor.facts import Gpus, KernelLog
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.logged_remapping import logged_remapping

LINE = "NVRM: Xid (PCI:0000:20:00): 63, pid=1, Row Remapper: New row marked for remapping, reset gpu to activate."


def test_log_without_xid_63_passes() -> None:
    assert compute_check(logged_remapping, gpus(2), log()).status is Status.PASS


def test_xid_63_passes_with_driver_state() -> None:
    result = compute_check(logged_remapping, gpus(2), logged(LINE))
    assert result.status is Status.PASS
    assert result.evidence[0].subject == "GPU 1 (0000:20:00.0)"


def test_xid_63_warns_without_driver_state() -> None:
    unread = gpus(2, gpu(0), gpu(1, remapped_rows_pending=None, errors={"remapped_rows_pending": "Unknown"}))
    for result in (
        compute_check(logged_remapping, unread, logged(LINE)),
        compute_check(logged_remapping, logged(LINE), missing={Gpus: "a log alone"}),
    ):
        assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)


def test_xid_63_with_failure_is_skipped() -> None:
    both = logged(LINE, "NVRM: Xid (PCI:0000:20:00): 48, pid=1")
    assert compute_check(logged_remapping, both, missing={Gpus: "a log alone"}).status is Status.SKIP


def test_unread_log_is_skipped() -> None:
    assert compute_check(logged_remapping, gpus(2), missing={KernelLog: "no"}).status is Status.SKIP


def test_other_xids_are_no_replacement_of_memory() -> None:
    result = compute_check(logged_remapping, gpus(2), logged("NVRM: Xid (PCI:0000:20:00): 13, pid=1"))
    assert [item.subject for item in result.evidence] == ["kernel log"]


def test_replacement_on_a_lost_gpu_is_explained_by_it() -> None:
    lost = gpu(1, remapped_rows_pending=None, errors={"handle": "GpuIsLost"})
    for second, explained_by in ((lost, ("gpu.responding",)), (gpu(1, remapped_rows_pending=None), ())):
        (found,) = compute_check(logged_remapping, gpus(2, gpu(0), second), logged(LINE)).findings
        assert found.finding.explained_by == explained_by
