"""Proves that an environment built from a lock works: runs the quick smoke tier with the lock's variables."""

from collections.abc import MutableMapping
from dataclasses import replace

from kdoctor.catalog.load import Catalog
from kdoctor.check import Check
from kdoctor.checklist.for_scenarios import checklist_of, choose_scenarios
from kdoctor.checklist.resolve import Checklist
from kdoctor.lock.document import Lock
from kdoctor.lock.facts import OF_ONE_JOB, WITHHELD
from kdoctor.probes.environment import allowed


def for_environment(checklist: Checklist, catalog: Catalog) -> tuple[Checklist, list[str]]:
    """The checklist, and the ids of its checks that depend on the environment only.

    These are the version checks that need no other facts, and the checks of the quick trainings. A checklist without
    quick trainings gets those of the catalog, because only a training proves that the environment works.
    """
    if not any(entry.scenario.tier == "quick" for entry in checklist.scenarios):
        quick = checklist_of(catalog, choose_scenarios(catalog), checklist.name, replicas=2)
        known = {entry.check.id for entry in quick.entries}
        others = (entry for entry in checklist.entries if entry.check.id not in known)
        checklist = replace(checklist, entries=(*others, *quick.entries), scenarios=quick.scenarios)
    # Driver and image belong to the machine, not to the environment.
    checklist = replace(checklist, assumptions=replace(checklist.assumptions, driver=None, image=None))
    trained = {entry.scenario.id for entry in checklist.scenarios if entry.scenario.tier == "quick"}

    def is_wanted(check: Check) -> bool:
        if check.family == "smoke":
            return check.scenario in trained
        return {needed.family for needed in catalog.closure([check.id])} == {"versions"}

    return checklist, [entry.check.id for entry in checklist.entries if is_wanted(entry.check)]


def restore_variables(lock: Lock, environ: MutableMapping[str, str]) -> None:
    """Set and unset the variables as recorded, except withheld values and variables that name one job."""
    recorded = lock.facts.get("environment")
    if recorded is None:
        return
    for name in allowed(environ):
        if name not in recorded and not name.startswith(OF_ONE_JOB):
            del environ[name]
    for name, value in recorded.items():
        if value != WITHHELD and not name.startswith(OF_ONE_JOB):
            environ[name] = value
