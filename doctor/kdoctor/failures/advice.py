"""What to do about a known failure: the checks that detect it, their fix, and the command that runs them."""

from collections.abc import Iterable, Iterator, Mapping

from kdoctor.check import Check
from kdoctor.commands import again
from kdoctor.failures.known import KnownFailure
from kdoctor.records import record
from kdoctor.smoke.scenario import Scenario


@record
class Advice:
    """What to do about a failure."""

    checks: tuple[str, ...]
    rules: tuple[str, ...]
    """Rules of the linter."""
    remedy: str
    """The fix of the first check; empty without one."""
    commands: tuple[str, ...]
    """Commands that run the checks."""


def advise(known: KnownFailure, checks: Mapping[str, Check], scenarios: Mapping[str, Scenario]) -> Advice:
    """The checks that detect a failure, and how to run them."""
    # A check without prerequisites is nearer to the cause.
    ours = (check for check in checks.values() if known.id in check.failure_modes)
    names = [check.id for check in sorted(ours, key=lambda check: len(check.requires))]
    detecting = [checks[name] for name in dict.fromkeys([*names, *known.checks]) if name in checks]
    return Advice(
        checks=tuple(check.id for check in detecting),
        rules=tuple(known.lint),
        remedy=detecting[0].remedy if detecting else "",
        commands=(*_commands(detecting, scenarios), *(["kdoctor lint ."] if known.lint else [])),
    )


def _commands(checks: Iterable[Check], scenarios: Mapping[str, Scenario]) -> Iterator[str]:
    selected: list[Check] = []
    slower: list[str] = []
    for check in checks:
        scenario = scenarios.get(check.scenario or "")
        if scenario is None or scenario.tier == "quick":
            selected.append(check)
        elif not scenario.needs_options:
            slower.append(scenario.id.removeprefix("smoke."))
    if selected:
        trains = any(check.scenario for check in selected)
        on_gpus = again.has_driver or any(check.needs_gpus for check in selected)
        how = " --no-smoke" if not trains else "" if on_gpus else " --checklist cpu-smoke"
        yield " ".join([f"kdoctor check{how}", *(f"--select {check.id}" for check in selected)])
    if slower:
        yield " ".join([f"kdoctor smoke{'' if again.has_driver else ' --replicas 2'}", *dict.fromkeys(slower)])
