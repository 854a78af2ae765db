"""What a check is: a pure function over facts, and what its author says about it."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any

from kdoctor.facts import FactGroup, SmokeRun, Unavailable
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import FAMILIES, Assumptions, Outcome, Severity

_ID = re.compile(rf"(?:{'|'.join(FAMILIES)})\.[a-z0-9]+(?:-[a-z0-9]+)*")
_SECTION = re.compile(r"^(Why|Remedy|Source|Sources|Failure modes):\s*", re.MULTILINE)
_MODE = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")

CheckFunction = Callable[..., Iterator[Outcome]]


class CheckDefinitionError(Exception):
    """A check is not defined correctly. The message is for its author."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A keyword-only parameter, which a checklist may set."""

    name: str
    annotation: Any
    default: Any


@dataclass(frozen=True, kw_only=True)
class Check:
    """A check as a value. Make one with :func:`check`."""

    id: str
    title: str
    """The healthy condition, in one short sentence."""
    why: str
    remedy: str
    """How to fix a failure, in general; each finding carries the commands."""
    sources: tuple[str, ...]
    """Public pages that the criterion comes from."""
    failure_modes: tuple[str, ...]
    """Ids of the known failures that it catches before the job starts (docs/failure-modes.md)."""
    severity: Severity
    requires: tuple[str, ...]
    """Prerequisites: the check is skipped if one of these checks failed."""
    needs_gpus: bool
    """Whether it is skipped under a checklist that expects no GPUs."""
    scenario: str | None
    """The scenario whose run it judges, if it asks for a ``SmokeRun``."""
    judges: tuple[str, ...]
    """The checklist's assumptions that it tests (see ``Assumptions.stated``)."""
    facts: Mapping[str, type]
    """Positional parameter to the type that it asks for."""
    tolerant: frozenset[str]
    """Positional parameters that also take ``Unavailable``."""
    parameters: Mapping[str, Parameter]
    function: CheckFunction

    @property
    def family(self) -> str:
        """The part of the id before the dot."""
        return self.id.partition(".")[0]

    @property
    def judges_trainings(self) -> bool:
        """Whether it judges trainings: the run of one scenario, or, in family ``smoke``, all runs."""
        return self.scenario is not None or self.family == "smoke"


def check(  # noqa: PLR0913 - what an author says about a check
    id: str,  # noqa: A002 - the field's word, and always passed by position
    *,
    severity: Severity,
    requires: Sequence[str] = (),
    needs_gpus: bool = False,
    scenario: str | None = None,
    judges: Sequence[str] = (),
) -> Callable[[CheckFunction], Check]:
    """Make a check of a function that yields outcomes.

    The function asks for facts by the types of its positional parameters (a fact group,
    ``SmokeRun`` for the scenario's run, ``Assumptions``, or ``VersionMatrix``). A group that is unavailable makes the
    check unknown before the function runs, unless the parameter also takes ``Unavailable``.
    Keyword-only parameters with defaults are what a checklist may set. The docstring's first line is
    the title (the healthy condition); ``Why:``, ``Remedy:`` and ``Source:`` sections are required;
    ``Failure modes:`` may list the ids of known failures that it catches, separated by commas.

    A pass needs evidence: a function that yields nothing has evaluated nothing and is unknown.

    Raises:
        CheckDefinitionError: the id, the docstring or the signature is not as described here.
    """

    def make(function: CheckFunction) -> Check:
        if not _ID.fullmatch(id):
            raise CheckDefinitionError(f"{id!r}: a check's id is family.slug, with a family of {', '.join(FAMILIES)}")
        title, why, remedy, sources, failure_modes = _parse_docstring(id, function)
        facts, tolerant, parameters = _parse_signature(id, function)
        if (SmokeRun in facts.values()) != (scenario is not None):
            raise CheckDefinitionError(f"{id}: a check names a scenario exactly if it asks for a SmokeRun")
        return Check(
            id=id,
            title=title,
            why=why,
            remedy=remedy,
            sources=sources,
            failure_modes=failure_modes,
            severity=severity,
            requires=tuple(requires),
            needs_gpus=needs_gpus,
            scenario=scenario,
            judges=tuple(judges),
            facts=facts,
            tolerant=tolerant,
            parameters=parameters,
            function=function,
        )

    return make


def _parse_docstring(check_id: str, function: CheckFunction) -> tuple[str, str, str, tuple[str, ...], tuple[str, ...]]:
    text = inspect.getdoc(function) or ""
    head, *pieces = _SECTION.split(text)
    sections = dict(zip(pieces[::2], pieces[1::2], strict=True))
    title = head.strip()
    why, remedy = (_prose(sections.get(name, "")) for name in ("Why", "Remedy"))
    source = sections.get("Source") or sections.get("Sources") or ""
    sources = tuple(line.strip(" -") for line in source.splitlines() if line.strip())
    modes = tuple(mode.strip() for mode in sections["Failure modes"].split(",")) if "Failure modes" in sections else ()
    if not all(_MODE.fullmatch(mode) for mode in modes) or len(set(modes)) < len(modes):
        raise CheckDefinitionError(
            f"{check_id}: 'Failure modes:' lists ids of failures, separated by commas, each once"
        )
    if not title or "\n" in title or not (why and remedy and sources):
        raise CheckDefinitionError(
            f"{check_id}: the docstring needs a one-line title, a 'Why:', a 'Remedy:' and a 'Source:'"
        )
    return title, why, remedy, sources, modes


def _prose(section: str) -> str:
    """A section's text in one paragraph, without the marks of docstrings; a name of code stays as it is."""
    text = " ".join(section.replace("``", "").split())
    is_code = any(mark in text.partition(" ")[0] for mark in "_=")
    return text if is_code else text[:1].upper() + text[1:]


def _parse_signature(
    check_id: str, function: CheckFunction
) -> tuple[dict[str, type], frozenset[str], dict[str, Parameter]]:
    facts: dict[str, type] = {}
    tolerant: set[str] = set()
    parameters: dict[str, Parameter] = {}
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        hint = parameter.annotation
        if hint is inspect.Parameter.empty:
            raise CheckDefinitionError(f"{check_id}: parameter {name!r} has no type")
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            if parameter.default is inspect.Parameter.empty:
                raise CheckDefinitionError(f"{check_id}: keyword parameter {name!r} needs a default")
            parameters[name] = Parameter(name=name, annotation=hint, default=parameter.default)
            continue
        facts[name], takes_unavailable = _fact_type(check_id, name, hint)
        if takes_unavailable:
            tolerant.add(name)
    return facts, frozenset(tolerant), parameters


def _fact_type(check_id: str, name: str, hint: Any) -> tuple[type, bool]:
    is_union = isinstance(hint, UnionType) or typing.get_origin(hint) is typing.Union
    members = typing.get_args(hint) if is_union else (hint,)
    wanted = [member for member in members if member is not Unavailable]
    if len(wanted) == 1 and _can_be_asked_for(wanted[0]):
        return wanted[0], len(members) > 1
    raise CheckDefinitionError(
        f"{check_id}: parameter {name!r} must be a fact group, Assumptions or VersionMatrix "
        "(with '| Unavailable' if the check handles missing facts)"
    )


def _can_be_asked_for(wanted: Any) -> typing.TypeGuard[type]:
    return isinstance(wanted, type) and issubclass(wanted, FactGroup | Assumptions | VersionMatrix)
