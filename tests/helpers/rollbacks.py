"""Rollback plans for the node of ``helpers.locks``."""

import subprocess
from dataclasses import replace

from helpers.facts import packages
from helpers.locks import lock, node_facts
from kdoctor.facts import FactGroup, Package, Packages
from kdoctor.lock.document import Lock
from kdoctor.lock.facts import recorded_facts
from kdoctor.rollback.document import RollbackPlan
from kdoctor.rollback.installers import read_installation
from kdoctor.rollback.plan import plan_rollback

PYTHON = "/opt/job/bin/python"


def planned(*changed: FactGroup, to: Lock | None = None) -> RollbackPlan:
    facts = node_facts(*changed)
    return plan_rollback(to or lock(), recorded_facts(facts), read_installation(facts), "job.lock.yaml", "job.yaml")


def with_packages(*others: Package, without: str = "", installer: str = "pip") -> Packages:
    """The recorded packages without one, and with others installed by ``installer``."""
    names = {item.name for item in others} | {without}
    kept = [item for item in packages().installed if item.name not in names]
    return packages(*(replace(item, installer=installer) for item in (*kept, *others)))


def shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["/bin/sh", "-c", command], check=False, capture_output=True, text=True)
