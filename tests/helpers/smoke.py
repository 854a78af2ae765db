"""Short scenarios that need no TensorFlow, and their runs."""

import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kdoctor.check import Check
from kdoctor.facts import SmokeCase, SmokeRun, SmokeRuns, Unavailable
from kdoctor.probes.probe import Context
from kdoctor.probes.process.child import Children
from kdoctor.smoke.scenario import Scenario
from kdoctor.smoke.session import OnEvent, SmokeSession, SmokeSettings
from kdoctor.testing import compute_check

QUICKLY_COMPILED = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
"""Tiny models take longer to compile than to train."""


def context(python: str = sys.executable, **environ: str) -> Context:
    """A context for a run, with its child processes."""
    return Context(python=python, chosen_by="--python", environ={**os.environ, **environ}, children=Children())


def scenario(folder: Path, *cases: str, deadline_s: float = 20.0, **bodies: str) -> Scenario:
    """A scenario with these bodies as cases. An underscore in a name becomes a dash."""
    names = cases or tuple(name.replace("_", "-") for name in bodies)
    functions = [
        f"def {name}(case):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n" for name, body in bodies.items()
    ]
    table = ", ".join(f"{name.replace('_', '-')!r}: {name}" for name in bodies)
    program = folder / "program.py"
    program.write_text("\n".join([*functions, f"CASES = {{{table}}}\n"]), encoding="utf-8")
    return Scenario(
        id="smoke.fake",
        version=1,
        kind="baseline",
        title="A fake",
        expect="as its cases say",
        program=program,
        cases=names,
        deadline_s=deadline_s,
    )


def session(
    fake: Scenario, where: Context | None = None, on_event: OnEvent | None = None, **settings: Any
) -> SmokeSession:
    """A session of one scenario on the CPU, without imports before its cases."""
    chosen = SmokeSettings(**{"devices_kind": "cpu", "replicas": 2, "preload": (), "parallel": 2, **settings})
    return SmokeSession([fake], chosen, where or context(), on_event)


def run_scenarios(scenarios: Sequence[Scenario], settings: SmokeSettings, where: Context) -> SmokeRuns:
    """Run every case of the scenarios, in one session for each framework."""
    runs: dict[str, SmokeRun | Unavailable] = {}
    for framework in dict.fromkeys(scenario.framework for scenario in scenarios):
        group = [scenario for scenario in scenarios if scenario.framework == framework]
        runs.update(SmokeSession(group, settings, where).run().runs)
    return SmokeRuns(runs=runs)


def run(fake: Scenario, where: Context | None = None, **settings: Any) -> SmokeRun:
    """The run of one scenario."""
    result = session(fake, where, **settings).run().runs[fake.id]
    assert isinstance(result, SmokeRun), result
    return result


def only_case(fake: Scenario, where: Context | None = None, **settings: Any) -> SmokeCase:
    """The only case of the run of a scenario."""
    (case,) = run(fake, where, **settings).cases
    return case


def findings_with(  # noqa: PLR0917 - where, what is planted, and what is trained and judged
    folder: Path, defect: str, scenario: Scenario, check: Check, preload: tuple[str, ...], python: str = sys.executable
) -> set[str]:
    """The cases with a finding of the check, if this code runs in the child process after the imports."""
    (folder / "planted_defect.py").write_text(defect, encoding="utf-8")
    settings = SmokeSettings(devices_kind="cpu", replicas=2, preload=(*preload, "planted_defect"))
    where = context(python, PYTHONPATH=str(folder), TF_USE_LEGACY_KERAS="0")
    (run,) = run_scenarios([scenario], settings, where).runs.values()
    assert isinstance(run, SmokeRun), run
    assert not run.failure, run.failure
    return {item.finding.subject.removeprefix("training ") for item in compute_check(check, run).findings}


_IGNORED = """
from keras.optimizers import {kind}
plain = {kind}.update_step

def ignoring(self, gradient, variable, learning_rate):
    given, self.{option} = self.{option}, self.{option} and {alone}
    plain(self, gradient, variable, learning_rate)
    self.{option} = given

{kind}.update_step = ignoring
"""


def ignored_options(alone: str) -> dict[str, str]:
    """Defects by name: an option of an optimizer has no effect over several devices, unless ``alone`` is true."""
    names = {
        "nesterov": ("SGD", "nesterov"),
        "amsgrad": ("Adam", "amsgrad"),
        "centered-rmsprop": ("RMSprop", "centered"),
    }
    return {name: _IGNORED.format(kind=kind, option=option, alone=alone) for name, (kind, option) in names.items()}
