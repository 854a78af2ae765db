from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.shell import quoted
from kdoctor.facts import Gpus, KernelLog, PciDevices, Unavailable
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Severity
from kdoctor_checks._gpus import RESPONDING, RESTART, lost_addresses, subjects
from kdoctor_checks._kernel_log import LOG_UNREAD, by_device, codes, is_failure, log_subject, nothing_logged, summary
from kdoctor_checks._xids import OF_REPAIRS


@check("gpu.logged-remapping", severity=Severity.WARNING, needs_gpus=True, unread=LOG_UNREAD)
def logged_remapping(log: KernelLog, gpus: Gpus | Unavailable, pci: PciDevices | Unavailable) -> Iterator[Outcome]:
    """The driver reports every memory replacement that the kernel logged.

    Why: Xid 63 means that a faulty row or page will be replaced at the next reset. Xid 94 is a contained memory error:
    it ended one program, and the bad memory stays in use until then. Other programs are not affected: NVIDIA's catalog
    asks for nothing after Xid 63 and to restart the program after Xid 94, so this is a warning. If the driver reports
    pending replacements, gpu.row-remapping-pending and gpu.retired-pages-pending check them. If it does not, the log is
    the only source.
    Remedy: check whether a replacement is pending, and reset the GPU.
    Sources:
        https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
        https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html
        https://docs.nvidia.com/deploy/dynamic-page-retirement/visibility.html
    """
    failed = {event.bus_id for event in log.events if is_failure(event)}
    events = [event for event in log.events if event.kind == "xid" and event.code in OF_REPAIRS]
    devices = by_device(event for event in events if event.bus_id not in failed)
    gone = lost_addresses(gpus, pci) if isinstance(gpus, Gpus) else ()
    reporting = {
        gpu.bus_id
        for gpu in (gpus.devices if isinstance(gpus, Gpus) else ())
        if gpu.remapped_rows_pending is not None or gpu.retired_pages_pending is not None
    }
    for bus_id, logged in devices.items():
        subject = log_subject(bus_id, subjects(gpus, pci))
        if bus_id in reporting:
            yield Evidence(subject=subject, observed=f"{codes(logged)}; the driver reports what is pending")
            continue
        yield Finding(
            subject=subject,
            observed=summary(logged),
            brief=codes(logged),
            expected="no Xid 63 or 94, or a driver that reports what is pending",
            remedy=Remedy.reboot(
                "Check whether a replacement is pending. If so, reset the GPU or restart the machine.",
                *((f"sudo nvidia-smi --gpu-reset -i {quoted(bus_id)}",) if bus_id else ("sudo reboot",)),
                look=("nvidia-smi -q -d ROW_REMAPPER,PAGE_RETIREMENT",),
            ),
            rollback=RESTART,
            explained_by=(RESPONDING,) if bus_id in gone else (),
        )
    if events and not devices:
        yield NotApplicable(reason="Xid 63 or 94 came with a failure that gpu.kernel-log reports")
    elif not devices:
        yield nothing_logged(log, gpus, pci, "memory replacement (Xid 63 or 94)", sign="Xid")
