"""The facts of a run that other nodes of a job should share."""

from collections.abc import Mapping

from kdoctor.facts import FactGroup, Facts, Gpus
from kdoctor.lock.facts import Section, recorded_facts


def shared_facts(facts: Facts) -> Mapping[str, Mapping[str, str]]:
    """The facts as a lock records them, by section, with those that only a job over several nodes needs.

    They have no serial numbers, paths, host names or variables of one job.
    """
    found: dict[str, Section] = {
        name: dict(section) for name, section in recorded_facts(facts).facts.items() if name != "scenarios"
    }
    gpus = facts.get(Gpus)
    links = [link for gpu in gpus.devices for link in gpu.nvlinks or ()] if isinstance(gpus, Gpus) else []
    if links:
        found.setdefault("topology", {})["nvlinks.active"] = str(sum(link.active is True for link in links))
    for group in facts.values():
        if isinstance(group, FactGroup):
            found |= {name: dict(section) for name, section in group.shared().items()}
    return found
