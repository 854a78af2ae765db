"""Printed commands and scripts do what they say: no part of a value is run."""

import copy
import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any

import pytest

from helpers.fuzzing.using import NOW, catalog, shipped
from helpers.hostile import CANARY, HOSTILE
from helpers.locks import lock
from helpers.rollbacks import planned
from kdoctor.commands.packages import conda_command, pip_command
from kdoctor.commands.shell import quoted, set_variable
from kdoctor.engine.report import Report
from kdoctor.facts import Facts
from kdoctor.lock.facts import recorded_facts
from kdoctor.report.formats import render
from kdoctor.rollback.installers import read_installation
from kdoctor.rollback.plan import plan_rollback
from kdoctor.rollback.render import as_script, as_text
from kdoctor.run.assemble import build_report
from kdoctor.run.session import Collected
from kdoctor.snapshot.document import SnapshotError, loads

PAYLOAD = "".join(HOSTILE[name] for name in ("shell", "shell quotes", "shell index", "shell lines", "here-document"))
GROUPS = 12
"""The number of turns. In each, other strings of the machine are hostile, so that checks with intact facts judge."""


def run(commands: Sequence[str], folder: Path) -> list[str]:
    """Run commands without any program on the path; the files that they made by accident."""
    work, listed = folder / "work", folder / "commands"
    work.mkdir(exist_ok=True)
    listed.write_bytes(b"".join(command.encode() + b"\0" for command in commands))
    # Each is evaluated separately, so that a syntax error in one does not hide the others.
    loop = 'while IFS= read -r -d "" command; do ( eval "$command" ) </dev/null >/dev/null 2>&1; done < "$1"; true'
    environ = {"PATH": str(folder / "nothing"), "HOME": str(folder)}
    subprocess.run(["/bin/bash", "-c", loop, "_", str(listed)], check=True, cwd=work, env=environ, timeout=60)
    # Commands write variables and the rollback script on purpose.
    return sorted(file.name for file in work.iterdir() if file.suffix not in (".env", ".sh"))


def answered(script: str) -> str:
    """A script whose questions are all answered with yes, and which goes on after a command that fails."""
    return script.replace("  local answer=no", "  return 0").replace("set -euo pipefail", "")


def leaves(node: Any) -> Iterator[tuple[Any, Any]]:
    """The container and the key of every single value."""
    for key, value in list(node.items()) if isinstance(node, dict) else list(enumerate(node)):
        if isinstance(value, dict | list) and value:
            yield from leaves(value)
        else:
            yield node, key


@cache
def document() -> dict[str, Any]:
    """The machine with four of its GPUs, and without most packages."""
    found: dict[str, Any] = json.loads(resources.files("kdoctor.testing").joinpath("h100-node.json").read_text())
    facts = found["facts"]
    kept = set(range(4))
    facts["gpus"]["devices"] = facts["gpus"]["devices"][:4]
    facts["gpu_sampling"]["gpus"] = facts["gpu_sampling"]["gpus"][:4]
    facts["gpus"]["pairs"] = [pair for pair in facts["gpus"]["pairs"] if {pair["first"], pair["second"]} <= kept]
    return found


def hostile(keys: set[str], number: float | None) -> Facts | None:
    """The facts with these keys' strings hostile, and every number replaced; values that no reader takes stay."""
    changed = copy.deepcopy(document())
    kept: dict[str, Any] = {}
    for name, group in changed["facts"].items():
        for container, key in leaves(group) if isinstance(group, dict) else ():
            value = container[key]
            if isinstance(value, str) and key in keys:
                container[key] = value + PAYLOAD
            elif (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and number is not None
                and key not in ("index", "minor_number", "first", "second")
            ):
                container[key] = number
        try:
            loads(json.dumps({**changed, "facts": {name: group}}), catalog().fact_groups)
            kept[name] = group
        except SnapshotError:
            kept[name] = document()["facts"][name]
    return loads(json.dumps({**changed, "facts": kept}), catalog().fact_groups).facts


def keys() -> list[str]:
    """The names of the facts that are text, and that may be any text."""
    found = sorted(
        {
            str(key)
            for group in document()["facts"].values()
            for container, key in leaves(group)
            if isinstance(container[key], str)
        }
    )
    return [key for key in found if hostile_is_read(key)]


def hostile_is_read(key: str) -> bool:
    for name, group in document()["facts"].items():
        changed = copy.deepcopy(group)
        places = [
            (container, at) for container, at in leaves(changed) if str(at) == key and isinstance(container[at], str)
        ]
        for container, at in places:
            container[at] += "x"
        try:
            loads(json.dumps({**document(), "facts": {name: changed}}), catalog().fact_groups)
        except SnapshotError:
            return False
    return True


def report_of(facts: Facts) -> Report:
    collected = Collected(facts=facts, target="x", started_at=NOW, duration_s=1.0, from_snapshot=True)
    return build_report(collected, replace(shipped(), lock=lock(), lock_file=Path("job.lock.yaml")))


def commands_of(report: Report) -> Iterator[str]:
    for result in report.results:
        for judged in result.findings:
            yield from (*judged.finding.remedy.commands, *judged.finding.remedy.look, *judged.finding.rollback.commands)
    for decision in report.decisions:
        for step in decision.steps:
            yield from step.commands
    for fix in report.plan:
        yield from (*fix.commands, *fix.look)


def test_no_command_of_a_hostile_machine_runs_a_part_of_a_value(tmp_path: Path) -> None:
    names = keys()
    Random(1).shuffle(names)
    assert len(names) > 60
    commands: set[str] = set()
    scripts: set[str] = set()
    # Large counts make most checks fail, and so print commands.
    turns = [(turn, number) for turn in range(GROUPS) for number in {(None, 0, 10**6)[turn % 3], 10**6}]
    for turn, number in turns:
        facts = hostile(set(names[turn::GROUPS]), number)
        assert facts is not None
        report = report_of(facts)
        commands.update(commands_of(report))
        plan = plan_rollback(lock(), recorded_facts(facts), read_installation(facts), "job.lock.yaml", "job")
        commands.update(command for step in plan.steps for command in (*step.commands, *step.verify))
        scripts |= {render(report, "fix-script"), as_script(plan)}
    reached = {command for command in commands if CANARY in command}
    assert len(reached) > 8
    assert run(sorted(commands), tmp_path) == []
    assert run([*scripts, *map(answered, scripts)], tmp_path) == []


@pytest.mark.parametrize("name", HOSTILE)
def test_builders_quote(name: str, tmp_path: Path) -> None:
    text = HOSTILE[name].replace("\x00", "")
    built = [
        quoted("echo", text),
        set_variable(text, "1"),
        set_variable("NAME", text),
        set_variable(text, None),
        pip_command("pip", text, "install", text),
        pip_command("uv", "/opt/job/bin/python", "uninstall", text, f"{text}==1", f"keras=={text}"),
        conda_command("create", text, text, f"{text}=1=0"),
    ]
    assert run([command.encode("utf-8", "replace").decode() for command in built], tmp_path) == []
    words = pip_command("pip", "/opt/job/bin/python", "install", text).split()
    assert not any(word.startswith(("--index-url", "keras")) for word in words)


@pytest.mark.parametrize("name", HOSTILE)
def test_rollback_to_a_hostile_lock_runs_nothing_of_it(name: str, tmp_path: Path) -> None:
    """Even if its values were not refused when it is read."""
    text = HOSTILE[name].replace("\x00", "").encode("utf-8", "replace").decode()
    facts = {
        "python": {"version": f"3.9{text}", "executable": text}, "packages": {text: text, "keras": text},
        "conda": {text: text}, "keras": {"backend": text, "epsilon": text, "floatx": text},
        "environment": {text: text, "NCCL_DEBUG": text}, "driver": {"version": f"580{text}"},
        "libraries": {"cudnn": text, "cudart": text}, "host": {"image": text},
    }  # fmt: skip
    for changed in (
        {**lock().facts, **facts},
        {**lock().facts, **{key: facts[key] for key in facts if key != "conda"}},
    ):
        plan = planned(to=lock().model_copy(update={"facts": changed, "recorded": text}))
        commands = [command for step in plan.steps for command in (*step.commands, *step.verify)]
        script = as_script(plan)
        as_text(plan)
        assert run([*commands, script, answered(script)], tmp_path) == []
