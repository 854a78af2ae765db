"""Describes the target interpreter: its packages, its TensorFlow build, the Keras that a job in it will use."""

from __future__ import annotations

from kdoctor.facts import FactGroup, KerasChoice, Packages, Target, TensorFlowBuild, Unavailable
from kdoctor.probes.probe import Collected, Context, Probe
from kdoctor.probes.process.child import ChildEnd
from kdoctor.probes.process.launch import program_argv
from kdoctor.probes.process.records import RecordError, build

DEADLINE_S = 30.0
"""A cold network file system takes seconds to list a large environment."""

_GROUPS: tuple[type[FactGroup], ...] = (Target, Packages, TensorFlowBuild, KerasChoice)


def collect(context: Context) -> Collected:
    """Run one program in the target interpreter; each group comes by itself, so one failure spares the others."""
    settings = {"deadline_s": DEADLINE_S, "executable": context.python, "chosen_by": context.chosen_by}
    argv = program_argv(context.python, "inspect.environment", settings)
    end = context.children.run(argv, env=context.environ, deadline_s=DEADLINE_S)
    return read_records(end)


def read_records(end: ChildEnd) -> Collected:
    """The groups that the child sent; what it did not send is unavailable."""
    records = {record["group"]: record for record in end.records if isinstance(record, dict) and "group" in record}
    return {kind: _read_group(kind, records.get(kind.group), end) for kind in _GROUPS}


def _read_group(kind: type[FactGroup], record: dict[str, object] | None, end: ChildEnd) -> FactGroup | Unavailable:
    if record is None:
        return Unavailable(unavailable=f"the target interpreter did not say: it {end.describe()}")
    if "facts" not in record:
        return Unavailable(unavailable=f"the target interpreter could not say: {record.get('error')}")
    try:
        return build(kind, record["facts"])
    except RecordError as error:
        return Unavailable(unavailable=f"the target interpreter sent rubbish: {error}")


PROBE = Probe(name="interpreter", provides=_GROUPS, collect=collect, deadline_s=DEADLINE_S + 10)
