"""Compares a section of facts over the nodes of a fleet: the odd nodes against the majority, or groups without one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from kdoctor.check import Check, check, text_of
from kdoctor.engine.report import Conclusion
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor.records import record
from kdoctor.text.lists import counted, grouped
from kdoctor_fleet.facts import Fleet, FleetNode, Section

ABSENT = "none"
"""The value of a fact that a node does not have."""

_NAMED = 3
_EACH_ITS_OWN = Rollback.irreversible("each node had its own value, which is in its report")


@record
class Difference:
    """One fact in which some nodes differ from the majority."""

    name: str
    """The fact: ``cudnn``."""
    label: str
    """As a report shows it: ``cuDNN``."""
    value: str
    others: str
    """The value of the majority."""


@record
class Comparison:
    """What is compared, and how differences are fixed."""

    section: str
    """Of the recorded facts: ``packages``."""
    what: str
    """In a sentence about all nodes: ``packages``."""
    fix: Callable[[str, Sequence[Difference], Sequence[FleetNode]], tuple[Remedy, Rollback]]
    """The fix for these nodes."""
    patterns: Sequence[str] = ("*",)
    """Shell-style patterns of the facts to compare."""
    without: Sequence[str] = ()
    """Patterns of those to leave out."""
    label: Callable[[str], str] | None = None
    """The name of a fact in a report, if the check's function does not give it."""
    absent: str = ABSENT
    """How a report says that a node does not have the fact."""
    explained_by: tuple[str, ...] = ()

    def shown(self, value: str) -> str:
        """A value in a report."""
        return self.absent if value == ABSENT else value

    def selects(self, name: str) -> bool:
        """Whether the fact is compared."""
        return any(fnmatchcase(name, pattern) for pattern in self.patterns) and not any(
            fnmatchcase(name, pattern) for pattern in self.without
        )


_Values = dict[str, tuple[str, ...]]
"""Value of a fact to the nodes that have it, the most frequent one first."""


def compared(
    id: str,  # noqa: A002 - always passed by position
    *comparisons: Comparison,
    severity: Severity,
    explained_by: Sequence[str] = (),
) -> Callable[[Callable[[str], str]], Check]:
    """Make a check of these sections from a function that names a fact in a report. Its docstring is as for ``check``.

    A fact that more than half of the nodes share is the majority's.
    """

    def make(label: Callable[[str], str]) -> Check:
        def compare(fleet: Fleet) -> Iterator[Outcome]:
            if len(fleet.nodes) < 2:  # noqa: PLR2004 - two nodes can differ
                yield NotApplicable(reason="only one node reported")
                return
            for comparison in comparisons:
                yield from _compare(fleet, comparison, comparison.label or label)

        return check(id, severity=severity, explained_by=explained_by, text=text_of(id, label))(compare)

    return make


def _compare(fleet: Fleet, comparison: Comparison, label: Callable[[str], str]) -> Iterator[Outcome]:
    reported = [node for node in fleet.nodes if comparison.section in node.sections]
    missing = [node.name for node in fleet.nodes if comparison.section not in node.sections]
    if missing:
        reason = f"its report has no facts about the {comparison.what}"
        yield Unjudged(subject=fleet.fold(missing), reason=reason)
    if len(reported) < 2:  # noqa: PLR2004 - two nodes can differ
        return
    values = _values(reported, comparison)
    different = {name: by_value for name, by_value in values.items() if len(by_value) > 1}
    majority = {name: _majority(by_value) for name, by_value in different.items()}
    odd = {name: value for name, value in majority.items() if value}
    yield from _odd(fleet, comparison, label, different, odd)
    worse = {node.name for node in reported if node.verdict is Conclusion.FAIL}
    worse |= {
        node
        for name, most in odd.items()
        for value in different[name].keys() - {most}
        for node in different[name][value]
    }
    split = {name: by_value for name, by_value in different.items() if name not in odd}
    for name, by_value in split.items():  # a group of nodes that passed and are as the others is the one to follow
        split[name] = dict(sorted(by_value.items(), key=lambda item: (-len(item[1]), worse.issuperset(item[1]))))
    yield from _split(fleet, comparison, label, split)
    if not different:
        observed = (
            f"{counted(len(values), 'fact')} about the {comparison.what}, equal on {counted(len(reported), 'node')}"
        )
        yield Evidence(subject=fleet.fold(node.name for node in reported), observed=observed)


def _values(nodes: Sequence[FleetNode], comparison: Comparison) -> dict[str, _Values]:
    """The values of each fact. Nodes with one section, which is one object, are taken together."""
    sections: dict[int, tuple[Section, list[str]]] = {}
    for node in nodes:
        section = node.sections[comparison.section]
        sections.setdefault(id(section), (section, []))[1].append(node.name)
    names = sorted({name for section, _ in sections.values() for name in section if comparison.selects(name)})
    found: dict[str, _Values] = {}
    for name in names:
        by_value: dict[str, list[str]] = {}
        for section, members in sections.values():
            by_value.setdefault(section.get(name, ABSENT), []).extend(members)
        ordered = sorted(by_value.items(), key=lambda item: (-len(item[1]), item[0]))
        found[name] = {value: tuple(sorted(members)) for value, members in ordered}
    return found


def _majority(by_value: _Values) -> str | None:
    """The value of more than half of the nodes; None if there is none."""
    value, members = next(iter(by_value.items()))
    return value if 2 * len(members) > sum(map(len, by_value.values())) else None


def _odd(
    fleet: Fleet,
    comparison: Comparison,
    label: Callable[[str], str],
    values: dict[str, _Values],
    majority: dict[str, str],
) -> Iterator[Finding]:
    """A finding for each set of nodes that differ in the same facts."""
    by_nodes: dict[tuple[str, ...], list[Difference]] = {}
    for name, others in majority.items():
        for value, members in values[name].items():
            if value != others:
                difference = Difference(name=name, label=label(name), value=value, others=others)
                by_nodes.setdefault(members, []).append(difference)
    shown = comparison.shown
    for members, differences in by_nodes.items():
        first = differences[0]
        subject, rest = fleet.fold(members), len(differences) - 1
        observed = _listed(f"{item.label} {shown(item.value)} (others {shown(item.others)})" for item in differences)
        alike = len(values[first.name][first.others])
        remedy, rollback = comparison.fix(subject, differences, [node for node in fleet.nodes if node.name in members])
        nodes = counted(sum(map(len, values[first.name].values())), "node")
        yield Finding(
            subject=subject,
            observed=f"{observed}; {alike} of {nodes} agree",
            brief=_brief(f"{first.label} {shown(first.value)}", f", others {shown(first.others)}", rest),
            expected=_listed(f"{item.label} {shown(item.others)}" for item in differences),
            remedy=remedy,
            rollback=rollback,
            explained_by=comparison.explained_by,
        )


def _split(
    fleet: Fleet, comparison: Comparison, label: Callable[[str], str], values: dict[str, _Values]
) -> Iterator[Finding]:
    """A finding for each division of the nodes into groups of which none is a majority."""
    facts_of = ((tuple(by_value.values()), (name, tuple(by_value))) for name, by_value in values.items())
    for groups, facts in grouped(facts_of).items():
        name, found = facts[0]
        named, found = label(name), tuple(map(comparison.shown, found))
        shown = [f"{named} {value} on {fleet.fold(members)}" for value, members in zip(found, groups, strict=True)]
        first, subject = fleet.fold(groups[0]), fleet.fold(node for members in groups for node in members)
        differences = [
            Difference(name=item, label=label(item), value=values_of[-1], others=values_of[0])
            for item, values_of in facts
        ]
        others = [node for node in fleet.nodes if any(node.name in members for members in groups[1:])]
        remedy, rollback = comparison.fix(fleet.fold(node.name for node in others), differences, others)
        rest = _listed(label(item) for item, _ in facts[1:])
        also = f"; the same groups differ in {rest}" if rest else ""
        yield Finding(
            subject=subject,
            observed=f"no majority: {_listed(shown)}{also}",
            brief=_brief(f"no majority: {named} {found[0]} or {found[1]}", "", len(facts) - 1),
            expected=f"one value of {_listed(label(item) for item, _ in facts)} on all nodes",
            remedy=replace(remedy, summary=f"Decide which group is right. To follow {first}: {remedy.summary}"),
            rollback=rollback if len(groups) == 2 else _EACH_ITS_OWN,  # noqa: PLR2004 - one group, and one to follow
            explained_by=comparison.explained_by,
        )


_LONGEST = 60


def _brief(text: str, more: str, rest: int) -> str:
    """The headline: the first difference, and how many more there are."""
    end = f" (and {rest} more)" if rest else ""
    for candidate in (f"{text}{more}{end}", f"{text}{end}"):
        if len(candidate) <= _LONGEST:
            return candidate
    return f"{text[: _LONGEST - len(end) - 4].rstrip()} ...{end}"


def _listed(texts: Iterable[str]) -> str:
    """The first ones, and how many more there are."""
    known = list(texts)
    more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    return ", ".join(known[:_NAMED]) + more
