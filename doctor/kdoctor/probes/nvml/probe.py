"""Asks the NVIDIA driver for its GPUs (NVML) in a child process: a faulty driver hangs or crashes its callers."""

from kdoctor.facts import Facts, Gpus, Unavailable
from kdoctor.probes.probe import Context, Probe
from kdoctor.probes.process.child import ChildEnd
from kdoctor.probes.process.launch import own_program_argv
from kdoctor.probes.process.records import RecordError, build

DEADLINE_S = 10.0
"""A healthy driver with eight GPUs answers within one second; without persistence mode it may take several."""


def collect(context: Context) -> Facts:
    """Run :mod:`kdoctor.probes.nvml.child` and read its records."""
    argv = own_program_argv("kdoctor.probes.nvml.child", {"deadline_s": DEADLINE_S, "root": str(context.root)})
    end = context.children.run(argv, env=context.environ, deadline_s=DEADLINE_S)
    return {Gpus: read_end(end)}


def read_end(end: ChildEnd) -> Gpus | Unavailable:
    """The facts that the child sent, or the calls in which its lanes hang."""
    places: dict[object, str | None] = {}
    for record in end.records:
        match record:
            case {"facts": facts}:
                try:
                    return build(Gpus, facts)
                except RecordError as error:
                    return Unavailable(unavailable=f"the NVML probe returned invalid data: {error}")
            case {"lane": lane, "at": str() | None as at}:
                places[lane] = at
            case {"at": str() | None as at}:
                places[None] = at
            case _:
                pass
    calls = ", or in ".join(at for at in places.values() if at)
    return Unavailable(unavailable=f"the NVML probe {end.describe()}" + (f" in {calls}" if calls else ""))


PROBE = Probe(name="nvml", provides=(Gpus,), collect=collect, deadline_s=DEADLINE_S + 10)
