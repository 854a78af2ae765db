"""Describes the target interpreter: its packages, its TensorFlow build, and the Keras that a job uses in it."""

import re
from dataclasses import replace

from kdoctor.facts import FactGroup, Facts, KerasChoice, Packages, Target, TensorFlowBuild, Unavailable
from kdoctor.probes.probe import Context, Probe
from kdoctor.probes.process.child import ChildEnd
from kdoctor.probes.process.launch import program_argv
from kdoctor.probes.process.records import RecordError, build

DEADLINE_S = 30.0
"""A cold network file system takes seconds to list a large environment."""

_ENDED_BY = re.compile(r'^  File "([^"\n]*/(?:site|user)customize\.py)"', re.MULTILINE)
_GROUPS: tuple[type[FactGroup], ...] = (Target, Packages, TensorFlowBuild, KerasChoice)


def collect(context: Context) -> Facts:
    """Run one program in the target interpreter. Each group is a separate record, so that they fail independently."""
    settings = {
        "deadline_s": DEADLINE_S,
        "executable": context.python,
        "chosen_by": context.chosen_by,
        "script_folder": str(context.first_folder.absolute()) if context.first_folder else None,
    }
    argv = program_argv(context.python, "inspect.environment", settings)
    end = context.children.run(argv, env=context.environ, deadline_s=DEADLINE_S)
    if end.exit_code and not end.records and not end.timed_out:
        ended_by = _ENDED_BY.search(end.stderr)
        reason = f"{context.python} {end.describe()} at its start"
        return dict.fromkeys(
            _GROUPS,
            Unavailable(unavailable=reason, interpreter=context.python, ended_by=ended_by[1] if ended_by else ""),
        )
    facts = dict(read_records(end))
    target = facts[Target]
    if isinstance(target, Target):
        facts[Target] = replace(target, stand_in=context.stand_in)
    return facts


def read_records(end: ChildEnd) -> Facts:
    """The groups that the child sent; missing ones are unavailable."""
    records = {record["group"]: record for record in end.records if isinstance(record, dict) and "group" in record}
    return {kind: _read_group(kind, records.get(kind.group), end) for kind in _GROUPS}


def _read_group(kind: type[FactGroup], record: dict[str, object] | None, end: ChildEnd) -> FactGroup | Unavailable:
    if record is None:
        return Unavailable(unavailable=f"the target interpreter {end.describe()} before it reported {kind.group}")
    if "facts" not in record:
        return Unavailable(unavailable=f"the target interpreter failed to read {kind.group}: {record.get('error')}")
    try:
        return build(kind, record["facts"])
    except RecordError as error:
        return Unavailable(unavailable=f"the target interpreter returned invalid data: {error}")


PROBE = Probe(name="interpreter", provides=_GROUPS, collect=collect, deadline_s=DEADLINE_S + 10)
