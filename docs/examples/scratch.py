"""Whether the scratch directory of our nodes has space."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from kdoctor.check import check
from kdoctor.facts import FactGroup, Unavailable
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity
from kdoctor.probes.probe import Context, Probe


@dataclass(frozen=True, kw_only=True)
class Scratch(FactGroup):
    """The scratch directory."""

    group: ClassVar[str] = "site_scratch"

    free_bytes: int


def read_scratch(context: Context) -> Mapping[type[FactGroup], FactGroup | Unavailable]:
    try:
        free = shutil.disk_usage(context.root / "scratch").free
    except OSError as error:
        return {Scratch: Unavailable(unavailable=f"/scratch: {error.strerror}")}
    return {Scratch: Scratch(free_bytes=free)}


PROBE = Probe(name="scratch", provides=(Scratch,), collect=read_scratch, deadline_s=10)


@check("host.scratch-space", severity=Severity.ERROR)
def scratch_space(scratch: Scratch, *, least_gib: int = 100) -> Iterator[Outcome]:
    """The scratch directory has space for checkpoints.

    Why: a full disk ends the job at its first checkpoint.
    Remedy: delete old checkpoints.
    Source: https://keras.io/api/callbacks/model_checkpoint/
    """
    free = scratch.free_bytes / 2**30
    if free >= least_gib:
        yield Evidence(subject="/scratch", observed=f"{free:.0f} GiB free", brief=f"/scratch {free:.0f} GiB free")
        return
    yield Finding(
        subject="/scratch",
        observed=f"{free:.0f} GiB free",
        expected=f"at least {least_gib} GiB",
        remedy=Remedy(summary="Delete old checkpoints.", action=Action.CONFIGURE, look=("du -sh /scratch/*",)),
        rollback=Rollback.irreversible("a deleted checkpoint cannot be restored"),
    )


PLUGIN = (PROBE, scratch_space)
