"""Checks: pure functions over facts, with their documentation."""

import ast
import functools
import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import UnionType
from typing import Any

from pydantic import ValidationError

from kdoctor.commands.ownership import as_user_may
from kdoctor.documents import adapter_of, fitted
from kdoctor.facts import FactGroup, SmokeRun, Target, Unavailable
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Assumptions, Outcome, Severity
from kdoctor.records import record
from kdoctor.text.kinds import describe_kind

_ID = re.compile(r"[a-z][a-z0-9]*\.[a-z0-9]+(?:-[a-z0-9]+)*")
_SECTION = re.compile(r"^(Why|Remedy|Source|Sources|Failure modes):\s*", re.MULTILINE)
_MODE = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")

CheckFunction = Callable[..., Iterator[Outcome]]


class CheckDefinitionError(Exception):
    """A check is not defined correctly."""


@record
class Parameter:
    """A keyword-only parameter of a check, which a checklist may set."""

    name: str
    annotation: Any
    default: Any


@record
class Check:
    """A check. Create one with ``check``."""

    id: str
    title: str
    """The healthy condition: one short sentence in the present tense."""
    why: str
    remedy: str
    """How to fix a failure in general. Each finding has the commands."""
    sources: tuple[str, ...]
    """Public pages with the criterion."""
    failure_modes: tuple[str, ...]
    """Ids of the known failures that it detects (docs/failure-modes.md)."""
    severity: Severity
    requires: tuple[str, ...]
    """Prerequisites: ids of checks. If one of them failed, the check is skipped."""
    needs_gpus: bool
    """Whether it is skipped if the checklist expects no GPUs."""
    scenario: str | None
    """The scenario that it judges, if it asks for a ``SmokeRun``."""
    explained_by: tuple[str, ...]
    """Ids of checks. If one of them failed, facts that this check asks for are unavailable because of it."""
    judges: tuple[str, ...]
    """Names of the checklist's assumptions that it tests (see ``Assumptions.stated``)."""
    answers: tuple[str, ...]
    """Ids of checks that warn of what some jobs do. If it has judged the user's job, their warnings are evidence."""
    unread: str
    """Why it is skipped if a group that it asks for is unavailable; empty if it is unknown then."""
    facts: Mapping[str, type]
    """Types of the positional parameters, by name."""
    tolerant: frozenset[str]
    """Names of the positional parameters that also accept ``Unavailable``."""
    parameters: Mapping[str, Parameter]
    function: CheckFunction

    @property
    def family(self) -> str:
        """The part of the id before the dot."""
        return self.id.partition(".")[0]

    @property
    def judges_trainings(self) -> bool:
        """Whether it judges one scenario or, in family ``smoke``, all of them."""
        return self.scenario is not None or self.family == "smoke"


@record
class CheckText:
    """What a check says about itself, see ``Check``."""

    title: str
    why: str
    remedy: str
    sources: tuple[str, ...]
    failure_modes: tuple[str, ...] = ()


def check(  # noqa: PLR0913 - the attributes of a check
    id: str,  # noqa: A002 - always passed by position
    *,
    severity: Severity = Severity.ERROR,
    requires: Sequence[str] = (),
    needs_gpus: bool = False,
    scenario: str | None = None,
    explained_by: Sequence[str] = (),
    judges: Sequence[str] = (),
    answers: Sequence[str] = (),
    unread: str = "",
    text: CheckText | None = None,
) -> Callable[[CheckFunction], Check]:
    """Make a check from a function that yields outcomes.

    The function asks for facts by the types of its positional parameters: a fact group, ``SmokeRun`` for the run of
    the scenario, ``Assumptions`` or ``VersionMatrix``. If a group is unavailable, the check is unknown and the function
    is not called, unless the parameter also accepts ``Unavailable``. A checklist may set the keyword-only parameters,
    which need defaults.

    The first line of the docstring is the title. ``Why:``, ``Remedy:`` and ``Source:`` sections are required. An
    optional ``Failure modes:`` section lists ids of known failures, separated by commas.

    A pass requires evidence: a function that yields nothing is unknown.

    Args:
        id: family and slug, such as ``gpu.free``.
        severity: the weight of a failure.
        requires: ids of checks that must not have failed.
        needs_gpus: whether to skip the check if the checklist expects no GPUs.
        scenario: the scenario that it judges.
        explained_by: ids of checks whose failure explains that its facts are unavailable.
        judges: names of the checklist's assumptions that it tests.
        answers: ids of checks whose warnings it judges for the user's job.
        unread: why it is skipped, and not unknown, if a group is unavailable.
        text: what the docstring has, if another decorator makes the function.

    Raises:
        CheckDefinitionError: the id, the docstring or the signature is not as described here.
    """
    if not isinstance(id, str):
        raise CheckDefinitionError(f"@check needs an id, such as @check('gpu.free'), found {describe_kind(id)}")

    def make(function: CheckFunction) -> Check:
        said = text or text_of(id, function)
        if not _ID.fullmatch(id):
            raise CheckDefinitionError(f"{id!r}: expected an id family.slug in lower case, such as gpu.free")
        facts, tolerant, parameters = _parse_signature(id, function)
        if (SmokeRun in facts.values()) != (scenario is not None):
            raise CheckDefinitionError(f"{id}: 'scenario' and a parameter of type SmokeRun require each other")
        return Check(
            id=id,
            title=said.title,
            why=_prose(said.why),
            remedy=_prose(said.remedy),
            sources=said.sources,
            failure_modes=said.failure_modes,
            severity=severity,
            requires=_ids(id, requires),
            needs_gpus=needs_gpus,
            scenario=scenario,
            explained_by=_ids(id, explained_by),
            judges=_ids(id, judges),
            answers=_ids(id, answers),
            unread=unread,
            facts=facts,
            tolerant=tolerant,
            parameters=parameters,
            function=_sparing(id, function),
        )

    return make


def _ids(check_id: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise CheckDefinitionError(f"{check_id}: expected a list of names, found the string {names!r}")
    return tuple(names)


def _sparing(check_id: str, function: CheckFunction) -> CheckFunction:
    """The function, whose outcomes are what they declare, and whose fixes change only what the user may."""

    @functools.wraps(function)
    def spared(*args: Any, **kwargs: Any) -> Iterator[Outcome]:
        targets = [value for value in (*args, *kwargs.values()) if isinstance(value, Target)]
        for outcome in _yielded(function(*args, **kwargs)):
            if not isinstance(outcome, Outcome):
                raise TypeError(f"it yielded {outcome!r}, which is not an outcome")
            right = fitted(outcome)
            yield as_user_may(right, targets[0], check_id) if targets else right

    return spared


def _yielded(outcomes: Any) -> Iterator[object]:
    """What a function yields. What it returns besides would be lost."""
    returned = yield from outcomes
    if returned is not None:
        raise TypeError(f"it returned {describe_kind(returned)}, which it should yield")


def text_of(check_id: str, function: Callable[..., Any]) -> CheckText:
    """The text of a check in the docstring of a function, see ``check``.

    Raises:
        CheckDefinitionError: a part is missing.
    """
    text = inspect.getdoc(function) or _written_docstring(function)
    head, *pieces = _SECTION.split(text)
    sections = dict(zip(pieces[::2], pieces[1::2], strict=True))
    title = head.strip()
    why, remedy = (sections.get(name, "").strip() for name in ("Why", "Remedy"))
    source = sections.get("Source") or sections.get("Sources") or ""
    sources = tuple(line.strip(" -") for line in source.splitlines() if line.strip())
    modes = tuple(mode.strip() for mode in sections["Failure modes"].split(",")) if "Failure modes" in sections else ()
    if not all(_MODE.fullmatch(mode) for mode in modes) or len(set(modes)) < len(modes):
        raise CheckDefinitionError(f"{check_id}: expected unique ids separated by commas in 'Failure modes:'")
    if not title or "\n" in title or not (why and remedy and sources):
        raise CheckDefinitionError(
            f"{check_id}: the docstring needs a one-line title and the sections 'Why:', 'Remedy:' and 'Source:'"
        )
    return CheckText(title=title, why=why, remedy=remedy, sources=sources, failure_modes=modes)


def _written_docstring(function: Callable[..., Any]) -> str:
    """The docstring in the source file, which Python drops with ``PYTHONOPTIMIZE=2``."""
    try:
        definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, SyntaxError):
        return ""
    return ast.get_docstring(definition) or "" if isinstance(definition, ast.FunctionDef) else ""


def _prose(section: str) -> str:
    """The text of a section as one paragraph with an upper-case first letter, unless it begins with code."""
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
            try:
                adapter_of(hint).validate_python(parameter.default, strict=True)
            except ValidationError:
                found = describe_kind(parameter.default)
                raise CheckDefinitionError(
                    f"{check_id}: parameter {name!r}: its default, {found}, is not of its type"
                ) from None
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
        "(with '| Unavailable' if the check handles missing facts); parameters of checklists come after '*'"
    )


def _can_be_asked_for(wanted: Any) -> typing.TypeGuard[type]:
    return isinstance(wanted, type) and issubclass(wanted, FactGroup | Assumptions | VersionMatrix)
