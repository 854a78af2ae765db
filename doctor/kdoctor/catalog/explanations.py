"""What plugins explain (entry point ``kdoctor.explanations``)."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kdoctor.plugins.installed import load, offers
from kdoctor.records import record

if TYPE_CHECKING:
    from kdoctor.check import Check
    from kdoctor.smoke.scenario import Scenario


@record
class Explanations:
    """What one plugin explains. Each function may be left out."""

    names: Callable[[], Sequence[str]] = tuple
    """The names that ``explain`` knows, for completion and for misspelt names."""
    explain: Callable[[str], str] = lambda _: ""
    """Everything about a name, as ``kdoctor explain`` prints it; empty for a name that it does not know."""
    causes: Callable[[str, Mapping[str, "Check"], Mapping[str, "Scenario"]], Sequence[str]] = lambda *_: ()
    """Ids of the known failures that a text shows, the cause first."""
    exception: Callable[[BaseException], str] = lambda _: ""
    """Why an exception was raised in this process; empty if that is not known."""


def explanations() -> list[Explanations]:
    """Those of all installed plugins."""
    return [load(entry) for entry in offers("explanations")]


def explain_exception(error: BaseException) -> str:
    """Why an exception was raised; empty if no plugin knows."""
    return next((text for known in explanations() if (text := known.exception(error))), "")
