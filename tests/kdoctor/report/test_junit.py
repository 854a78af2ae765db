import xml.etree.ElementTree as ET
from dataclasses import replace

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from helpers.reports import LONG_COMMAND, cpu_report, failure, gpu_report
from kdoctor.engine.report import Report
from kdoctor.model import Severity
from kdoctor.report.formats import render


def suites(report: Report) -> dict[str, TestSuite]:
    return {suite.name: suite for suite in JUnitXml.fromstring(render(report, "junit").encode())}


def cases(report: Report) -> dict[str, TestCase]:
    return {case.name: case for suite in suites(report).values() for case in suite}


def test_each_family_is_a_suite_in_order() -> None:
    assert list(suites(gpu_report())) == ["kdoctor.versions", "kdoctor.gpu", "kdoctor.topology", "kdoctor.host"]


def test_tallies_match_the_report() -> None:
    xml = JUnitXml.fromstring(render(gpu_report(), "junit").encode())
    assert (xml.tests, xml.failures, xml.errors, xml.skipped) == (5, 2, 1, 2)
    assert (suites(gpu_report())["kdoctor.gpu"].tests, suites(gpu_report())["kdoctor.gpu"].failures) == (2, 1)


def test_failure_has_severity_and_commands() -> None:
    case = cases(gpu_report())["versions.driver-for-cuda"]
    assert case.classname == "kdoctor.versions"
    (outcome,) = case.result
    assert isinstance(outcome, Failure)
    assert outcome.type == "error"
    assert outcome.message.startswith("tensorflow 2.21.0: built for CUDA 12.5")
    assert f"    {LONG_COMMAND}\n" in outcome.text
    assert "To undo: tensorflow 2.20.0, as recorded\n    python -m pip" in outcome.text


def test_failure_that_another_explains_names_it_instead_of_a_second_fix() -> None:
    report = gpu_report()
    cause = replace(report.causes[0], checks=("gpu.visible-to-driver",), explains=("versions.driver-for-cuda",))
    (outcome,) = cases(replace(report, causes=(cause,)))["versions.driver-for-cuda"].result
    assert "gpu.visible-to-driver" in outcome.text
    assert LONG_COMMAND not in outcome.text
    assert "To undo" not in outcome.text


def test_several_findings_are_all_shown() -> None:
    (outcome,) = cases(gpu_report())["gpu.visible-to-driver"].result
    assert outcome.message.endswith("(and 1 more)")
    assert "GPU 6 (0000:70:00.0)" in outcome.text
    assert "Not judged: 0000:80:00.0: " in outcome.text


def test_unknown_is_an_error_unless_accepted() -> None:
    (unknown,) = cases(gpu_report())["host.shared-memory"].result
    assert isinstance(unknown, Error)
    assert unknown.message == "the probe of the host did not finish within 5 s"
    (accepted,) = cases(cpu_report())["host.shared-memory"].result
    assert isinstance(accepted, Skipped)
    assert "accepted: the sandbox hides it" in accepted.message


def test_skip_has_a_reason_and_pass_has_evidence() -> None:
    (skipped,) = cases(gpu_report())["topology.pcie-width"].result
    assert isinstance(skipped, Skipped)
    assert skipped.message == gpu_report().results[3].reason
    passed = cases(cpu_report())["versions.tensorflow-installed"]
    assert passed.result == []
    assert passed.system_out == "tensorflow: 2.21.0"


def test_checks_skipped_for_one_reason_are_one_case() -> None:
    suite = suites(cpu_report())["kdoctor.gpu"]
    (skipped,) = (case for case in suite if case.name == "the checklist expects no GPUs")
    assert "gpu.free" in skipped.result[0].message.split(", ")
    assert suite.tests == len(list(suite))


def test_target_is_a_property() -> None:
    properties = {item.name: item.value for item in suites(gpu_report())["kdoctor.gpu"].properties()}  # type: ignore[no-untyped-call]
    assert properties["checklist"] == "multi-gpu-keras v1"
    assert properties["target"].startswith("/opt/job/bin/python")


def test_empty_report_is_valid() -> None:
    assert JUnitXml.fromstring(render(replace(gpu_report(), results=()), "junit").encode()).tests == 0


def test_waived_finding_is_not_counted() -> None:
    waived = gpu_report().results[3].findings
    mixed = failure("gpu.free")
    (outcome,) = cases(replace(gpu_report(), results=(replace(mixed, findings=(*mixed.findings, *waived)),)))[
        "gpu.free"
    ].result
    assert "more)" not in outcome.message


def test_failure_below_fail_on_is_system_out() -> None:
    """A CI system reports a failure if and only if the exit code is not 0."""
    lenient = cases(cpu_report())["smoke.starved-replica"]
    assert lenient.result == []
    assert "warning, below --fail-on error:" in lenient.system_out
    assert "4 of 10 variables hold NaN" in lenient.system_out
    strict = cases(cpu_report(fail_on=Severity.WARNING))["smoke.starved-replica"]
    assert isinstance(strict.result[0], Failure)
    unknown = replace(gpu_report().results[4], severity=Severity.INFO)
    (outcome,) = cases(replace(gpu_report(), results=(unknown,)))[unknown.id].result
    assert isinstance(outcome, Skipped)


def test_root_has_the_attributes_that_jenkins_allows() -> None:
    """Source: https://github.com/jenkinsci/xunit-plugin, junit-10.xsd, as of 2026-11-20."""
    root = ET.fromstring(render(gpu_report(), "junit"))  # noqa: S314 - our own text
    assert set(root.attrib) <= {"name", "time", "tests", "failures", "disabled", "errors"}
