"""Asks the NVIDIA driver for its GPUs (NVML), in a process of its own: a sick driver hangs or crashes its callers."""

from __future__ import annotations

import threading

from kdoctor.facts import Gpus, Unavailable
from kdoctor.probes.probe import Collected, Context, Probe
from kdoctor.probes.process.child import ChildEnd
from kdoctor.probes.process.launch import own_program_argv
from kdoctor.probes.process.records import RecordError, build, prepare

DEADLINE_S = 10.0
"""A healthy driver with eight GPUs answers within one second; without persistence mode it may take several."""


def collect(context: Context) -> Collected:
    """Run :mod:`kdoctor.probes.nvml.child` and read what it sent."""
    # The reader of such a record takes as long to make as the child takes to start: they do so at once.
    threading.Thread(target=prepare, args=(Gpus,), daemon=True).start()
    argv = own_program_argv("kdoctor.probes.nvml.child", {"deadline_s": DEADLINE_S, "root": str(context.root)})
    end = context.children.run(argv, env=context.environ, deadline_s=DEADLINE_S)
    return {Gpus: read_end(end)}


def read_end(end: ChildEnd) -> Gpus | Unavailable:
    """The facts that the child sent, or in which calls it got stuck: one in each of its lanes."""
    places: dict[object, str | None] = {}
    for record in end.records:
        match record:
            case {"facts": facts}:
                try:
                    return build(Gpus, facts)
                except RecordError as error:
                    return Unavailable(unavailable=f"the NVML probe sent rubbish: {error}")
            case {"lane": lane, "at": str() | None as at}:
                places[lane] = at
            case {"at": str() | None as at}:
                places[None] = at
            case _:
                pass
    told = ", or in ".join(at for at in places.values() if at)
    return Unavailable(unavailable=f"the NVML probe {end.describe()}" + (f" in {told}" if told else ""))


PROBE = Probe(name="nvml", provides=(Gpus,), collect=collect, deadline_s=DEADLINE_S + 10)
