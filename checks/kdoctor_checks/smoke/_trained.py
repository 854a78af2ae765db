"""Makes the checks that judge each case of a training, most of them against the same training on one device."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from inspect import Parameter, Signature, signature
from typing import Any, Final

from kdoctor.check import Check, CheckText, check, text_of
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor.smoke.builtin import SCENARIOS
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, judge_cases

_CASES = {check: cases for scenario in SCENARIOS for check, cases in scenario.judged_by.items()}

_COMPARED_BY: Final = {"target": Target | Unavailable, "packages": Packages | Unavailable}
"""Facts that a ``Comparison`` needs besides the run."""

Judge = Callable[..., "Outcome | Iterable[Outcome]"]


def cases_of(check_id: str) -> tuple[str, ...]:
    """The cases that a scenario's definition gives to a check."""
    return _CASES[check_id]


def trained(
    id: str,  # noqa: A002 - always passed by position
    *,
    text: CheckText | None = None,
    severity: Severity = Severity.ERROR,
    scenario: str = "",
    cases: Sequence[str] | None = None,
    requires: Sequence[str] = TENSORFLOW,
    explained_by: Sequence[str] = NO_GPU,
    tolerance: float | None = TOLERANCE,
    refusals: Sequence[str] = (),
    replicated: bool = True,
    finished: bool = True,
    **comparison: Any,
) -> Callable[[Judge], Check]:
    """Make a check from a function that judges one case. Its docstring is as for ``check``.

    It gets what it asks for by the names of its parameters: the ``case``, its ``run``, ``compare`` (a ``Comparison``),
    ``tolerance`` and ``refusals``. Others are as for ``check``: facts, and parameters for checklists.

    Args:
        id: family and slug.
        text: what the check says about itself, if that is not the docstring.
        severity: the weight of a failure.
        scenario: the scenario that it judges; the one with the check's id if empty.
        cases: the cases that it judges; those that the scenario's definition gives to it if None.
        requires: ids of checks that must not have failed.
        explained_by: ids of checks whose failure explains that there is no run.
        tolerance: the default of the check's parameter, unless the function has no use for it; None if it has none.
        refusals: the default of the check's parameter: errors with which the framework may refuse a case.
        replicated: whether a case must have trained on all requested replicas, at least two.
        finished: whether a case that did not finish is reported without the function.
        comparison: other fields of ``Comparison``.
    """

    def make(judge: Judge) -> Check:
        wanted = signature(judge, eval_str=True).parameters
        facts = {"run": SmokeRun, **(_COMPARED_BY if "compare" in wanted else {})}
        settings: dict[str, tuple[Any, Any]] = {"refusals": (tuple[str, ...], tuple(refusals))} if refusals else {}
        limited = tolerance is not None and not wanted.keys().isdisjoint({"compare", "tolerance"})
        settings |= {"tolerance": (float, tolerance)} if limited else {}
        for name, one in wanted.items():
            if one.kind is Parameter.KEYWORD_ONLY:
                settings.setdefault(name, (one.annotation, one.default))
            elif name not in ("case", "compare", *settings):
                facts.setdefault(name, one.annotation)

        def judge_all(**given: Any) -> Iterator[Outcome]:
            known = {**{name: default for name, (_, default) in settings.items()}, **given}
            if "compare" in wanted:
                compared = {name: known[name] for name in ("run", *_COMPARED_BY)}
                limits = {"tolerance": known["tolerance"]} if limited else {}
                known["compare"] = Comparison(**compared, **limits, **comparison)
            return judge_cases(
                known["run"],
                cases_of(id) if cases is None else cases,
                lambda case: judge(**{name: case if name == "case" else known[name] for name in wanted}),
                replicated=replicated,
                trained=finished,
                refusals=known["refusals"] if refusals else (),
            )

        every = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=kind) for name, kind in facts.items()]
        for name, (kind, default) in settings.items():
            every.append(Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=default))
        judge_all.__signature__ = Signature(every)  # type: ignore[attr-defined]
        said, scenario_id = text or text_of(id, judge), scenario or id
        made = check(
            id, severity=severity, requires=requires, scenario=scenario_id, explained_by=explained_by, text=said
        )
        return made(judge_all)

    return make
