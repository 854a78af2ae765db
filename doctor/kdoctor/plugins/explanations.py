"""What plugins explain (entry point ``kdoctor.explanations``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kdoctor.check import Check
from kdoctor.plugins.installed import load, offers
from kdoctor.smoke.scenario import Scenario


def _no_names() -> Sequence[str]:
    return ()


def _nothing(name: str) -> str:  # noqa: ARG001 - of its type
    return ""


def _no_causes(text: str, checks: Mapping[str, Check], scenarios: Mapping[str, Scenario]) -> Sequence[str]:  # noqa: ARG001 - of its type
    return ()


def _not_known(error: BaseException) -> str:  # noqa: ARG001 - of its type
    return ""


@dataclass(frozen=True, kw_only=True)
class Explanations:
    """What one plugin explains. Each function may be left out."""

    names: Callable[[], Sequence[str]] = _no_names
    """The names that ``explain`` knows, for completion and for misspelt names."""
    explain: Callable[[str], str] = _nothing
    """Everything about a name, as ``kdoctor explain`` prints it; empty for a name that it does not know."""
    causes: Callable[[str, Mapping[str, Check], Mapping[str, Scenario]], Sequence[str]] = _no_causes
    """Ids of the known failures that a text shows, the cause first."""
    exception: Callable[[BaseException], str] = _not_known
    """Why an exception was raised in this process; empty if that is not known."""


def explanations() -> Iterator[Explanations]:
    """Those of all installed plugins."""
    for entry in offers("explanations"):
        yield load(entry)


def explain_exception(error: BaseException) -> str:
    """Why an exception was raised; empty if no plugin knows."""
    return next((text for known in explanations() if (text := known.exception(error))), "")
