"""Whether there is room for checkpoints and temporary files."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Disk, Host
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import GIB, size

_FOLDERS = ("working folder", "temporary folder")


@check("host.disk", severity=Severity.WARNING)
def disk(host: Host, *, least_gib: float = 2.0) -> Iterator[Outcome]:
    """The working folder and the temporary folder have room left.

    Why: a checkpoint that cannot be written ends the job, after all the work that it should have saved. A large
    model's checkpoint holds its weights and twice as much for the optimizer: state what yours needs (``least_gib``).
    Remedy: make room, or run the job where there is some.
    Sources:
        https://keras.io/api/callbacks/model_checkpoint/
        https://www.tensorflow.org/guide/checkpoint
    """
    found = {item.folder: item for item in host.disks}
    for folder in _FOLDERS:
        item = next((disk for name, disk in found.items() if name == folder), None)
        if item is None:
            yield Unjudged(subject=folder, reason="its file system was not read, or did not answer in time")
        else:
            yield _judge(item, least_gib)


def _judge(item: Disk, least_gib: float) -> Outcome:
    words = f"{size(item.free_bytes)} of {size(item.total_bytes)} free"
    if item.free_bytes >= least_gib * GIB:
        return Evidence(subject=item.folder, observed=words)
    where = "." if item.folder == "working folder" else '"${TMPDIR:-/tmp}"'
    return Finding(
        subject=item.folder,
        observed=words,
        expected=f"at least {least_gib:g} GiB free",
        remedy=Remedy(
            summary="Make room, or run the job where there is some.",
            action=Action.CONFIGURE,
            commands=(f"df -h {where}", f"du -xh --max-depth=1 {where} | sort -h | tail"),
        ),
        rollback=Rollback.irreversible("files that were deleted do not come back"),
    )
