"""What proves that an environment built from a lock works: the quick smoke tier, under the lock's variables."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import replace

from kdoctor.check import Check
from kdoctor.checklist.for_scenarios import checklist_of, choose_scenarios
from kdoctor.checklist.resolve import Checklist
from kdoctor.engine.catalog import Catalog
from kdoctor.lock.document import Lock
from kdoctor.lock.facts import OF_ONE_JOB, WITHHELD
from kdoctor.probes.environment import allowed


def for_environment(checklist: Checklist, catalog: Catalog) -> tuple[Checklist, list[str]]:
    """The checklist and those of its checks that judge the environment alone.

    These are the checks of versions that need nothing but the environment, and those of the quick trainings: the
    checklist's own, or where it has none the catalog's. Without a training nothing would be proved.
    """
    if not any(entry.scenario.tier == "quick" for entry in checklist.scenarios):
        quick = checklist_of(catalog, choose_scenarios(catalog), checklist.name, replicas=2)
        known = {entry.check.id for entry in quick.entries}
        others = (entry for entry in checklist.entries if entry.check.id not in known)
        checklist = replace(checklist, entries=(*others, *quick.entries), scenarios=quick.scenarios)
    # Driver and image are the machine's, whatever is installed in the environment.
    checklist = replace(checklist, assumptions=replace(checklist.assumptions, driver=None, image=None))
    trained = {entry.scenario.id for entry in checklist.scenarios if entry.scenario.tier == "quick"}

    def is_wanted(check: Check) -> bool:
        if check.family == "smoke":
            return check.scenario in trained
        return {needed.family for needed in catalog.closure([check.id])} == {"versions"}

    return checklist, [entry.check.id for entry in checklist.entries if is_wanted(entry.check)]


def restore_variables(lock: Lock, environ: MutableMapping[str, str]) -> None:
    """Set and unset the variables as the lock has them; what is withheld, and what names one job, stays as it is."""
    recorded = lock.facts.get("environment")
    if recorded is None:
        return
    for name in allowed(environ):
        if name not in recorded and not name.startswith(OF_ONE_JOB):
            del environ[name]
    for name, value in recorded.items():
        if value != WITHHELD and not name.startswith(OF_ONE_JOB):
            environ[name] = value
