"""Runs the checks that confirm a diagnosis on this machine."""

from collections.abc import Iterator, Sequence

from kdoctor.catalog.load import Catalog
from kdoctor.engine.report import Result
from kdoctor.probes.probe import Probe
from kdoctor.report.phrases import describe_reason
from kdoctor.run.assemble import build_report
from kdoctor.run.plan import plan_without_checklist
from kdoctor.run.session import RequestedTraining, examination
from kdoctor_diagnose.model import Confirmation, Diagnosis

_REPLICAS = 2
"""Logical CPU devices of the trainings: a defect of the packages shows there, too."""
_TIER = "quick"
_NO_CHECK = "--check ran nothing: no short check confirms what the logs show"


def confirm(
    diagnosis: Diagnosis, catalog: Catalog, probes: Sequence[Probe], *, python: str | None, timeout_s: float
) -> Diagnosis:
    """The diagnosis with what the confirming checks found. Longer trainings are left to the commands that it names."""
    causes = {check: cause.id for cause in reversed(diagnosis.causes) for check in cause.checks}
    checks = [check for check in catalog.closure(causes) if _is_quick(check.scenario, catalog)]
    if not checks:
        return diagnosis.model_copy(update={"notes": [*diagnosis.notes, _NO_CHECK]})
    plan = plan_without_checklist("diagnose", "kdoctor diagnose", checks, allow_unknown=True)
    scenarios = dict.fromkeys(check.scenario for check in checks if check.scenario)
    with examination(probes, python, timeout_s) as examined:
        examined.run([RequestedTraining(scenario=catalog.scenarios[name], replicas=_REPLICAS) for name in scenarios])
    report = build_report(examined.collected, plan, use_history=False)
    found = [
        Confirmation(cause=causes[result.id], check=result.id, status=result.status.value, observed=observed)
        for result in report.results
        if result.id in causes
        for observed in ["; ".join(_parts(result)) or describe_reason(result) or result.title]
    ]
    return diagnosis.model_copy(update={"confirmations": found})


def _is_quick(scenario: str | None, catalog: Catalog) -> bool:
    known = catalog.scenarios.get(scenario or "")
    return scenario is None or (known is not None and known.tier == _TIER and not known.needs_options)


def _parts(result: Result) -> Iterator[str]:
    yield from (f"{item.finding.subject}: {item.finding.observed}" for item in result.findings)
    if not result.findings:
        yield from (f"{item.subject}: {item.observed}" for item in result.evidence)
