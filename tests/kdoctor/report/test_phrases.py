"""The verdict in one line."""

from datetime import date

from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.reports import cpu_report, finding, result
from kdoctor.catalog.load import load_catalog
from kdoctor.engine.judge import judge
from kdoctor.engine.report import JudgedFinding, Waiver
from kdoctor.engine.verdict import conclude
from kdoctor.model import Status
from kdoctor.report.phrases import verdict_line
from kdoctor.run.plan import RunOptions
from kdoctor.testing import healthy_node

CHECKS = ("gpu", "topology", "host", "driver.loaded", "gpu.free", "versions")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(CHECKS), max_size=3, unique=True),
    st.lists(st.sampled_from(CHECKS), max_size=2, unique=True),
    st.sampled_from([None, 0, 8]),
)
def test_what_options_left_out_is_in_the_line_of_the_verdict(
    skip: list[str], select: list[str], gpus: int | None
) -> None:
    select = [name for name in select if name not in skip and name.partition(".")[0] not in skip]
    options = RunOptions(checklist="multi-gpu-keras", skip=skip, select=select, gpus=gpus, use_lock=False)
    plan = options.plan(load_catalog())
    results = judge(plan.checks, healthy_node(), plan.rules)
    left_out = sum(bool(entry.deselected) for entry in plan.checks)
    line = verdict_line(cpu_report(results=results, verdict=conclude(results)))
    assert (f" {left_out} left out" in line) == bool(left_out)


def test_waived_finding_is_in_the_line_of_the_verdict() -> None:
    waiver = Waiver(check="gpu.free", subject="*", reason="known", owner="us", expires=date(2030, 1, 1))
    waived = JudgedFinding(finding=finding(), waiver=waiver)
    results = [result("gpu.free", Status.SKIP, findings=(waived,)), result("host.swap")]
    assert "waived: gpu.free" in verdict_line(cpu_report(results=tuple(results), verdict=conclude(results)))
