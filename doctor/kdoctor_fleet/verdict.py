"""The verdict over a fleet: are there enough nodes for the job?"""

import math
import re
from collections import Counter
from collections.abc import Sequence

from kdoctor.engine.causes import describe_problem
from kdoctor.engine.exit_codes import EXIT_FAIL, EXIT_PASS, EXIT_UNKNOWN
from kdoctor.engine.report import Cause, Conclusion, Verdict
from kdoctor.errors import UsageError
from kdoctor.model import Severity
from kdoctor.text.lists import counted
from kdoctor.text.wrap import shorten
from kdoctor_fleet.facts import NodeState
from kdoctor_fleet.report import NodeNote

_LONGEST = 120


def needed_nodes(threshold: str | None, total: int) -> int:
    """How many nodes must pass: all of them, or what ``--min-healthy`` says.

    Args:
        threshold: a number (``60``) or a share (``95%``).
        total: number of expected nodes, or of those that reported and of files that may be of further nodes.

    Raises:
        UsageError: the threshold is neither, or is out of range.
    """
    if threshold is None:
        return total
    found = re.fullmatch(r"(\d{1,7}(?:\.\d{1,6})?)(%?)", threshold.strip())
    if not found or ("." in found[1] and not found[2]):
        raise UsageError(f"--min-healthy {threshold}: expected a number of nodes or a percentage, such as 60 or 95%")
    share, is_percentage = float(found[1]), bool(found[2])
    if is_percentage and share > 100:  # noqa: PLR2004 - percent
        raise UsageError(f"--min-healthy {threshold}: more than 100 percent")
    needed = math.ceil(total * share / 100 - 1e-9) if is_percentage else int(share)
    if needed < 1:
        raise UsageError(f"--min-healthy {threshold}: at least one node must pass")
    return needed


def conclude_fleet(  # noqa: PLR0913 - what is known about the fleet
    nodes: Sequence[NodeNote],
    needed: int,
    *,
    causes: Sequence[Cause],
    unread: int,
    undecided: Sequence[str],
    options: str = "",
    as_of: str = "",
) -> Verdict:
    """Pass if enough nodes passed; fail if too many failed; else inconclusive.

    Args:
        nodes: all nodes. Those that were not expected do not count.
        needed: how many must pass.
        causes: what is wrong, the worst first.
        unread: number of files that may be reports of further nodes.
        undecided: ids of required checks that could not be judged for the job as a whole.
        options: what changed the questions to the nodes that passed.
        as_of: the day of the newest report, if that is not today.
    """
    counting = [node for node in nodes if node.expected]
    states = [node.state for node in counting]
    passed, failed = states.count(NodeState.PASSED), states.count(NodeState.FAILED)
    unknown = len(states) - passed - failed
    text = f"{passed} of {counted(len(counting), 'node')} passed"
    if needed != len(counting):
        text += f", {needed} needed"
    unreadable = f"{counted(unread, 'file')} could not be read" if unread and passed < needed else ""
    warned = any(cause.severity is not Severity.INFO for cause in causes)
    if passed + unknown + unread < needed:
        return Verdict(
            conclusion=Conclusion.FAIL,
            exit_code=EXIT_FAIL,
            reason=f"{text}{f'; {unreadable}' * bool(unreadable)}{_worst(causes)}",
        )
    if options and passed:
        text += f", asked with {shorten(options, _LONGEST)}"
    if as_of:
        text += f", as of {as_of}"
    missing = [f"{unknown} unknown ({_why_unknown(counting)})"] if unknown and passed < needed else []
    missing += [unreadable] if unreadable else []
    missing += [f"{', '.join(undecided)} could not be evaluated"] if undecided else []
    if missing:
        reason = f"{text}; {'; '.join(missing)}"
        return Verdict(conclusion=Conclusion.UNKNOWN, exit_code=EXIT_UNKNOWN, reason=reason)
    return Verdict(conclusion=Conclusion.PASS, exit_code=EXIT_PASS, reason=text, warned=warned)


def _why_unknown(nodes: Sequence[NodeNote]) -> str:
    """The reason of most nodes that neither passed nor failed."""
    reasons = Counter(node.reason for node in nodes if node.state not in (NodeState.PASSED, NodeState.FAILED))
    (reason, number), *others = reasons.most_common()
    if not others and number == 1:
        return f"{next(node.name for node in nodes if node.reason == reason)}: {reason}"
    return reason + (f": {counted(number, 'node')}" if others else "")


def _worst(causes: Sequence[Cause]) -> str:
    errors = [cause for cause in causes if cause.severity is Severity.ERROR]
    if not errors:
        return ""
    more = f", and {counted(len(errors) - 1, 'more problem')}" if errors[1:] else ""
    return f": {describe_problem(errors[0].problems[0])} ({errors[0].checks[0]}){more}"
