from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Disk, Host
from kdoctor.model import Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._gpus import GIB, judge, size
from kdoctor_checks.host._sizes import short_size


@check("host.disk", severity=Severity.WARNING)
def disk(host: Host, *, least_gib: float = 2.0) -> Iterator[Outcome]:
    """The working folder and the temporary folder have free disk space.

    Why: a checkpoint that cannot be written ends the job and loses the work since the last one. With Adam, the
    checkpoint of a large model is three times the size of its weights. Set ``least_gib`` to what the job needs.
    Remedy: free disk space, or run the job on another file system.
    Sources:
        https://keras.io/api/callbacks/model_checkpoint/
        https://www.tensorflow.org/guide/checkpoint
    """
    for folder in ("working folder", "temporary folder"):
        item = next((disk for disk in host.disks if disk.folder == folder), None)
        if item is None:
            yield Unjudged(subject=folder, reason="its file system was not read, or did not respond in time")
        else:
            yield _judge(item, least_gib)


def _judge(item: Disk, least_gib: float) -> Outcome:
    free = f"{size(item.free_bytes)} of {size(item.total_bytes)} free"
    where = "." if item.folder == "working folder" else '"${TMPDIR:-/tmp}"'
    return judge(
        item.folder,
        free,
        ok=item.free_bytes >= least_gib * GIB,
        value=f"{short_size(item.free_bytes)} disk free" if where == "." else "",
        expected=f"at least {least_gib:g} GiB free",
        brief=f"{free}, less than {least_gib:g} GiB",
        remedy=Remedy.configure(
            "Free disk space, or run the job on another file system.",
            look=(f"df -h {where}", f"du -xh --max-depth=1 {where} | sort -h | tail"),
        ),
        rollback=Rollback.irreversible("not possible (deleted files cannot be restored)"),
    )
