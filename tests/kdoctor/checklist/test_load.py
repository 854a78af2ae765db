from __future__ import annotations

import os
from dataclasses import replace
from datetime import date
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.catalogs import host_check, scenario, small_catalog, smoke_check
from kdoctor.catalog import Catalog
from kdoctor.checklist import Checklist, ChecklistError, Problem, json_schema, load_checklist
from kdoctor.model import GpuAssumption, Severity
from kdoctor.report_model import Waiver

HEAD = "schema: kdoctor/checklist/v1\nname: job\nversion: 3\nowner: ml-platform\n"
CHECKS = "checks:\n  - id: host.memory\n"
REASON = "these tests are about something else"
NO_SCENARIOS = f"\nwithout: {{baseline: {REASON}, edge-case: {REASON}, failure-path: {REASON}}}\n"
ONLY_BASELINE = f"\nwithout: {{edge-case: {REASON}, failure-path: {REASON}}}\n"
FULL = (
    HEAD
    + """\
assumptions:
  python: ">=3.10,<3.14"
  gpus: {count: 8}
checks:
  - {id: gpu.count-expected, severity: warning, accept_unknown: a container hides them}
  - id: host.memory
    parameters: {least_gib: 2, names: [a, b], level: far}
  - id: versions.python-supported
  - id: smoke.baseline
scenarios:
  - {id: smoke.baseline, kind: baseline, strategy: mirrored, replicas: gpus, expect: it trains}
without: {edge-case: none was written yet, failure-path: none was written yet}
waivers:
  - {check: host.memory, subject: "host*", reason: known, owner: ada, expires: 2030-12-31}
rollback:
  decides: ada
  at_once: [versions.*]
  fix_forward: [host]
"""
)


@pytest.fixture
def catalog() -> Catalog:
    return small_catalog()


def read(tmp_path: Path, catalog: Catalog, text: str | bytes) -> Checklist:
    path = tmp_path / "job.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_checklist(str(path), catalog)


def told(tmp_path: Path, catalog: Catalog, text: str | bytes) -> list[str]:
    """Every problem as ``line:column: message``."""
    with pytest.raises(ChecklistError) as caught:
        read(tmp_path, catalog, text)
    assert caught.value.source == str(tmp_path / "job.yaml")
    return [f"{problem.line}:{problem.column}: {problem.message}" for problem in caught.value.problems]


def test_a_checklist_is_read_whole(tmp_path: Path, catalog: Catalog) -> None:
    checklist = read(tmp_path, catalog, FULL)
    assert (checklist.name, checklist.version, checklist.owner) == ("job", 3, "ml-platform")
    assert checklist.assumptions.python == ">=3.10,<3.14"
    assert checklist.assumptions.gpus == GpuAssumption(count=8)
    first, second, *_ = checklist.entries
    assert (first.check.id, first.severity) == ("gpu.count-expected", Severity.WARNING)
    assert first.accept_unknown == "a container hides them"
    assert second.parameters == {"least_gib": 2, "names": ("a", "b"), "level": "far"}
    (training,) = checklist.scenarios
    assert (training.replicas, training.expect, training.note.kind) == ("gpus", "it trains", "baseline")
    assert checklist.waivers == (
        Waiver(check="host.memory", subject="host*", reason="known", owner="ada", expires=date(2030, 12, 31)),
    )
    assert checklist.rollback
    assert checklist.rollback.at_once == ("versions.*",)


def test_severity_is_the_checks_own_unless_it_is_set(tmp_path: Path, catalog: Catalog) -> None:
    checklist = read(tmp_path, catalog, HEAD + "checks: [{id: host.shared-memory}]" + NO_SCENARIOS)
    assert checklist.entries[0].severity is Severity.WARNING


def test_rules_carry_assumptions_and_waivers(tmp_path: Path, catalog: Catalog) -> None:
    checklist = read(tmp_path, catalog, FULL)
    rules = checklist.rules(today=date(2030, 1, 1), fail_on=Severity.WARNING, allow_unknown=True)
    assert rules.assumptions == checklist.assumptions
    assert rules.waivers == checklist.waivers
    assert (rules.fail_on, rules.allow_unknown, rules.today) == (Severity.WARNING, True, date(2030, 1, 1))


def test_a_quoted_date_and_a_byte_order_mark_are_read(tmp_path: Path, catalog: Catalog) -> None:
    text = "\ufeff" + FULL.replace("2030-12-31", "'2030-12-31'")
    assert read(tmp_path, catalog, text).waivers[0].expires == date(2030, 12, 31)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEAD + CHECKS + "chekcs: 1", "7:1: unknown key 'chekcs'; did you mean 'checks'?"),
        (HEAD + "checks: [{id: host.memry}]", "5:15: unknown check 'host.memry'; did you mean 'host.memory'?"),
        (HEAD + "checks: [{id: free}]", "5:15: unknown check 'free'; did you mean 'gpu.free'?"),
        (
            HEAD + "checks: [{id: host.memory, severity: eror}]",
            "5:38: 'severity' is 'eror'; expected one of error, warning, info; did you mean 'error'?",
        ),
        (
            HEAD + "checks: [{id: host.memory, parameters: {leas_gib: 1}}]",
            "5:41: host.memory has no parameter 'leas_gib'; did you mean 'least_gib'?",
        ),
        (
            HEAD + "checks: [{id: gpu.free, parameters: {x: 1}}]",
            "5:38: gpu.free has no parameter 'x'; it takes none",
        ),
        (
            HEAD + "checks: [{id: host.memory, parameters: {least_gib: lots}}]",
            "5:52: parameter 'least_gib' of host.memory does not take \"lots\": input should be a valid number",
        ),
        (
            HEAD + "checks: [{id: host.memory, parameters: {level: afar}}]",
            "5:48: parameter 'level' of host.memory does not take \"afar\": input should be 'near' or 'far'",
        ),
        (
            HEAD + "checks: [{id: host.memory, parameters: {least_gib: .nan}}]",
            "5:52: parameter 'least_gib' of host.memory does not take NaN: it must be finite",
        ),
        (
            HEAD + "checks: [{id: host.memory, parameters: {least_gib: 1:30}}]",
            "5:52: YAML reads 1:30 as the number 90: write the number plainly, or the text in quotes",
        ),
        (
            HEAD.replace("version: 3", "version: 010") + CHECKS,
            "3:10: YAML reads 010 as the number 8: write the number plainly, or the text in quotes",
        ),
        (HEAD + CHECKS + "owner: me", "7:1: the key 'owner' stands here twice (first in line 4): keep one"),
        (HEAD + CHECKS + "  - id: host.memory", "7:9: host.memory is listed twice (first in line 6): keep one"),
        (HEAD, "1:1: 'checks' is missing"),
        (HEAD + "checks:", "5:8: 'checks' selects nothing: a run of an empty checklist would test nothing"),
        (HEAD + "checks: []", "5:9: 'checks' selects nothing: a run of an empty checklist would test nothing"),
        (HEAD + "checks: [host.memory]", "5:10: an entry of 'checks': expected a mapping, not the text 'host.memory'"),
        (
            HEAD + CHECKS + "assumptions: {python: 3.10}",
            "7:23: YAML reads 'python' as the number 3.1: put it in quotes, \"3.10\"",
        ),
        (
            HEAD + CHECKS + "assumptions: {environment: {TF_X: true}}",
            "7:35: YAML reads 'TF_X' as the truth value true: put it in quotes, \"true\"",
        ),
        (
            HEAD + CHECKS + "assumptions: {python: '3.11'}",
            (
                "7:23: 'python': '3.11' is no version specifier (PEP 440), such as '>=3.10,<3.14'; "
                'for this release write "==3.11" or "~=3.11"'
            ),
        ),
        (
            HEAD + CHECKS + "assumptions: {packages: {keras: ''}}",
            "7:33: 'keras': the version specifier is empty, so it would test nothing: for any version write '>=0'",
        ),
        (
            HEAD + CHECKS + "assumptions: {packages: {tf_keras: '>1', tf-keras: '>1'}}",
            "7:42: 'tf-keras' and 'tf_keras' are one package: keep one",
        ),
        (
            HEAD + CHECKS + "assumptions: {gpus: {count: 2, at_least: 1}}",
            "7:32: 'count' (exactly) and 'at_least' exclude each other: keep one",
        ),
        (HEAD + CHECKS + "assumptions: {gpus: {}}", "7:21: 'gpus' states nothing: give count, at_least or model"),
        (
            HEAD + CHECKS + "assumptions: {gpus: {count: -1}}",
            "7:29: 'count' is -1: input should be greater than or equal to 0",
        ),
        (
            HEAD.replace("version: 3", "version: '3'") + CHECKS,
            "3:10: 'version': expected a whole number, not the text '3'",
        ),
        (HEAD + CHECKS + "waivers: [{check: host.memory, owner: a, expires: 2030-01-01}]", "7:11: 'reason' is missing"),
        (HEAD + CHECKS + "waivers: [{check: host.memory, owner: a, reason: b}]", "7:11: 'expires' is missing"),
        (
            HEAD + CHECKS + "waivers: [{check: host.memory, owner: a, reason: ' ', expires: 2030-01-01}]",
            "7:50: 'reason' is empty: say it in words",
        ),
        (
            HEAD + CHECKS + "waivers: [{check: host.memory, owner: a, reason: b, expires: soon}]",
            "7:62: 'expires': expected a date such as 2030-12-31, not 'soon'",
        ),
        (
            HEAD + CHECKS + "waivers: [{check: host.memory, owner: a, reason: b, expires: 2030-13-45}]",
            "7:62: '2030-13-45' cannot be read: month must be in 1..12",
        ),
        (
            HEAD + CHECKS + "waivers: [{check: gpu.free, owner: a, reason: b, expires: 2030-01-01}]",
            "7:19: this waives gpu.free, which the checklist does not ask for",
        ),
        (
            HEAD + CHECKS + "waivers: [{check: gpu.fre, owner: a, reason: b, expires: 2030-01-01}]",
            "7:19: unknown check 'gpu.fre'; did you mean 'gpu.free'?",
        ),
        (
            HEAD + CHECKS + "rollback: {decides: me, at_once: [host.memroy]}",
            "7:35: 'host.memroy' matches no check of this checklist; did you mean 'host.memory'?",
        ),
        (HEAD + CHECKS + "rollback: {at_once: [host]}", "7:11: 'decides' is missing"),
        (
            HEAD + CHECKS + "rollback: {decides: me, at_once: host}",
            "7:34: 'at_once': expected a list, not the text 'host'",
        ),
        (HEAD + "? [a]\n: 1\n" + CHECKS, "5:3: a key must be plain text"),
        (
            HEAD + CHECKS + "  - id: !!python/object:os.system x",
            "7:9: the tag 'tag:yaml.org,2002:python/object:os.system' is not allowed in a checklist",
        ),
        ("name: x", "1:1: 'schema: kdoctor/checklist/v1' is missing, so this is no checklist"),
        (
            "schema: docker/v3",
            "1:9: the schema is 'docker/v3', so this is no checklist (expected kdoctor/checklist/v1)",
        ),
        (
            "schema: kdoctor/checklist/v2\nchecks: {}",
            (
                "1:9: the schema kdoctor/checklist/v2 is not known to this kdoctor, which reads kdoctor/checklist/v1: "
                "upgrade keras-doctor"
            ),
        ),
        ("- a", "1:1: a checklist is a mapping that starts with 'schema: kdoctor/checklist/v1', not a list"),
        ("", "1:1: the file is empty"),
        ("# only a comment\n", "1:1: the file is empty"),
        (HEAD + "<<<<<<< HEAD\n" + CHECKS, "5:1: an unresolved merge conflict (<<<<<<<): resolve it first"),
        (
            HEAD + "checks: &a [{id: host.memory}]\nscenarios: *a",
            "6:12: the alias *a: write the value out, a checklist has none",
        ),
        (HEAD + CHECKS + "---\n" + HEAD, "7:1: a second document ('---'): one file holds one checklist"),
        (b"schema: x\nname: caf\xe9", "2:10: the file is not UTF-8 (byte 0xe9): save it as UTF-8"),
        ("schema: x\nname: \x07", "2:1: a control character (U+0007) stands in the text"),
        (HEAD + "checks: " + "[" * 50, "5:20: nested more than 12 deep: this is no checklist"),
    ],
)
def test_each_mistake_is_told_with_its_place(
    tmp_path: Path, catalog: Catalog, text: str | bytes, expected: str
) -> None:
    assert told(tmp_path, catalog, text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("checks: [", "not YAML"), ("a: b: c", "not YAML"), ("\tchecks: 1", "indent with spaces, not with tabs")],
)
def test_what_is_no_yaml_is_told(tmp_path: Path, catalog: Catalog, text: str, expected: str) -> None:
    (problem,) = told(tmp_path, catalog, text)
    assert expected in problem


def test_all_mistakes_are_told_in_order(tmp_path: Path, catalog: Catalog) -> None:
    text = (
        "schema: kdoctor/checklist/v1\nname: My Job\nversion: one\nowner: x\nassumtions: {}\n"
        "checks:\n  - {id: host.nothing}\n  - {id: host.memory, parameters: {least_gib: x, y: 1}}\n"
        "waivers: [{check: gone.gone}]\n"
    )
    problems = told(tmp_path, catalog, text)
    assert [problem.split(":")[0] for problem in problems] == ["2", "3", "5", "7", "8", "8", "9", "9", "9", "9"]


def test_the_text_names_the_file_and_fits_one_screen(tmp_path: Path, catalog: Catalog) -> None:
    text = HEAD + "checks:\n" + "".join(f"  - id: no.check-{'x' * 900}{number}\n" for number in range(40))
    with pytest.raises(ChecklistError) as caught:
        read(tmp_path, catalog, text)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(f"{tmp_path}/job.yaml:6:9: unknown check")
    assert lines[-1] == "... and 25 more"
    assert len(lines) == 16
    assert max(map(len, lines)) < 500
    assert len(caught.value.problems) == 40


def test_an_assumption_that_nothing_judges_is_told(tmp_path: Path, catalog: Catalog) -> None:
    text = HEAD + CHECKS + "assumptions: {python: '>=3.10', gpus: {at_least: 2, model: H100}}" + NO_SCENARIOS
    assert told(tmp_path, catalog, text) == [
        "7:15: no check of this list judges the assumption 'python': add versions.python-supported to 'checks'",
        "7:40: no check of this list judges the assumption 'gpus.count': add gpu.count-expected to 'checks'",
        "7:53: no check of this list judges the assumption 'gpus.model', and no installed check does",
    ]


def test_a_list_without_one_of_the_three_kinds_says_why(tmp_path: Path, catalog: Catalog) -> None:
    assert told(tmp_path, catalog, HEAD + CHECKS) == [
        (
            "1:1: no scenario of kind 'baseline': add smoke.baseline to 'scenarios', or say why not, "
            "'without: {baseline: \"the reason\"}'"
        ),
        "1:1: no scenario of kind 'edge-case': say why not, 'without: {edge-case: \"the reason\"}'",
        "1:1: no scenario of kind 'failure-path': say why not, 'without: {failure-path: \"the reason\"}'",
    ]
    assert read(tmp_path, catalog, HEAD + CHECKS + NO_SCENARIOS).without["baseline"] == REASON


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            FULL.replace("without: {", "without: {baseline: too slow, "),
            "16:11: a scenario of kind 'baseline' is listed, so the reason to do without one is out of date",
        ),
        (
            FULL.replace("without: {edge-case", "without: {edge-cases"),
            "16:11: 'edge-cases' is neither a kind of scenario nor a check; did you mean 'edge-case'?",
        ),
        (
            FULL.replace("without: {", "without: {gpu.free: busy, "),
            "16:11: gpu.free is not inherited: without 'extends', leave it out of the list",
        ),
        (
            FULL.replace("edge-case: none was written yet", "edge-case: ' '"),
            "16:22: 'edge-case' is empty: say it in words",
        ),
        (
            FULL.replace("fix_forward: [host]", "investigate: [severity:eror]"),
            "22:17: 'severity:eror' matches no check of this checklist; did you mean 'severity:error'?",
        ),
    ],
)
def test_mistakes_in_without_and_in_criteria(tmp_path: Path, catalog: Catalog, text: str, expected: str) -> None:
    assert told(tmp_path, catalog, text) == [expected]


def test_a_scenario_that_nothing_judges_is_told(tmp_path: Path, catalog: Catalog) -> None:
    text = HEAD + CHECKS + "scenarios: [{id: smoke.baseline, kind: baseline, replicas: 2, expect: x}]" + ONLY_BASELINE
    assert told(tmp_path, catalog, text) == [
        "7:18: no check of this list judges scenario smoke.baseline: add smoke.baseline to 'checks'"
    ]


def test_a_check_whose_scenario_is_not_listed_is_told(tmp_path: Path, catalog: Catalog) -> None:
    assert told(tmp_path, catalog, HEAD + CHECKS + "  - id: smoke.baseline" + NO_SCENARIOS) == [
        "7:9: smoke.baseline judges scenario smoke.baseline, which is not listed: add it to 'scenarios'"
    ]


def test_a_prerequisites_scenario_counts_too(tmp_path: Path) -> None:
    catalog = small_catalog(host_check("host.after", requires=["smoke.baseline"]))
    (problem,) = told(tmp_path, catalog, HEAD + "checks: [{id: host.after}]" + NO_SCENARIOS)
    assert problem.startswith("5:15: smoke.baseline judges scenario smoke.baseline, which is not listed")


SCENARIO = HEAD + "checks: [{id: smoke.baseline}]\nscenarios:\n  - "


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            "{id: smoke.base, kind: baseline, replicas: 2, expect: x}",
            "7:10: unknown scenario 'smoke.base'; did you mean 'smoke.baseline'?",
        ),
        (
            "{id: smoke.baseline, kind: edge-case, replicas: 2, expect: x}",
            "7:32: smoke.baseline is of kind 'baseline', not 'edge-case'",
        ),
        (
            "{id: smoke.baseline, kind: baseline, replicas: gpu, expect: x}",
            (
                "7:52: 'replicas': expected 'gpus' (one on each visible GPU) or a number from 1 to 64, not 'gpu'; "
                "did you mean 'gpus'?"
            ),
        ),
        (
            "{id: smoke.baseline, kind: baseline, replicas: true, expect: x}",
            "7:52: 'replicas': expected 'gpus' (one on each visible GPU) or a number from 1 to 64, not True",
        ),
        (
            "{id: smoke.baseline, kind: baseline, strategy: miror, replicas: 2, expect: x}",
            (
                "7:52: 'strategy' is 'miror'; expected one of mirrored, one-device, central-storage, multi-worker, "
                "parameter-server, tpu; did you mean 'mirrored'?"
            ),
        ),
        (
            "{id: smoke.baseline, kind: baseline, strategy: tpu, replicas: 2, expect: x}",
            "7:52: smoke.baseline is about strategy 'mirrored', not 'tpu'",
        ),
        ("{id: smoke.baseline, kind: baseline, replicas: 2}", "7:5: 'expect' is missing"),
    ],
)
def test_mistakes_in_a_scenario(tmp_path: Path, catalog: Catalog, entry: str, expected: str) -> None:
    assert told(tmp_path, catalog, SCENARIO + entry) == [expected]


def test_a_scenario_listed_twice_is_told(tmp_path: Path) -> None:
    catalog = small_catalog(scenario("smoke.edge", "edge-case"), smoke_check("smoke.edge", "smoke.edge"))
    entry = "{id: smoke.baseline, kind: baseline, replicas: 2, expect: x}"
    assert told(tmp_path, catalog, f"{SCENARIO}{entry}\n  - {entry}") == [
        "8:10: smoke.baseline is listed twice (first in line 7): keep one"
    ]


def test_a_name_with_a_typing_error(catalog: Catalog) -> None:
    shipped = replace(catalog, checklists={"cpu-smoke": Path("x"), "multi-gpu-keras": Path("y")})
    with pytest.raises(ChecklistError) as caught:
        load_checklist("cpu-smok", shipped)
    assert str(caught.value).splitlines() == [
        "cpu-smok: no checklist of that name is shipped; did you mean 'cpu-smoke'?",
        "Shipped are: cpu-smoke, multi-gpu-keras. For a file of your own give its path, such as ./cpu-smok.yaml",
    ]


def test_a_shipped_checklist_is_found_by_name(tmp_path: Path, catalog: Catalog) -> None:
    path = tmp_path / "anything"
    path.write_text(FULL)
    checklist = load_checklist("job", replace(catalog, checklists={"job": path}))
    assert (checklist.name, checklist.source) == ("job", "shipped")


def test_a_file_in_the_working_folder_needs_no_slash(
    tmp_path: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").write_text(FULL)
    assert load_checklist("mine", catalog).source == "mine"


def test_a_path_that_is_not_there(tmp_path: Path, catalog: Catalog) -> None:
    (tmp_path / "job.yaml").write_text(FULL)
    with pytest.raises(ChecklistError, match=r"job\.yml: there is no such file; did you mean 'job\.yaml'\?"):
        load_checklist(str(tmp_path / "job.yml"), catalog)


def test_a_directory(tmp_path: Path, catalog: Catalog) -> None:
    with pytest.raises(ChecklistError, match="this is a directory, not a checklist"):
        load_checklist(f"{tmp_path}/", catalog)


def test_a_pipe_is_not_waited_for(tmp_path: Path, catalog: Catalog) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(ChecklistError, match="not a regular file"):
        load_checklist(str(tmp_path / "pipe.yaml"), catalog)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file(tmp_path: Path, catalog: Catalog) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(FULL)
    path.chmod(0)
    with pytest.raises(ChecklistError, match="cannot be read: Permission denied"):
        load_checklist(str(path), catalog)


def test_a_name_that_no_file_can_have(catalog: Catalog) -> None:
    with pytest.raises(ChecklistError, match="no checklist of that name is shipped"):
        load_checklist("x" * 5000, catalog)


def test_a_path_with_a_null_byte(catalog: Catalog) -> None:
    with pytest.raises(ChecklistError, match="cannot be read"):
        load_checklist("a/b\0c", catalog)


def test_a_file_that_is_too_large(tmp_path: Path, catalog: Catalog) -> None:
    (problem,) = told(tmp_path, catalog, b"#" * (512 * 1024 + 1))
    assert "too large to be a checklist" in problem


def test_the_schema_accepts_what_is_read_and_refuses_what_is_not() -> None:
    document = yaml.load(FULL.replace("2030-12-31", "'2030-12-31'"), Loader=yaml.SafeLoader)
    validator = jsonschema.Draft202012Validator(json_schema())
    jsonschema.Draft202012Validator.check_schema(json_schema())
    validator.validate(document)
    wrongs: tuple[dict[str, object], ...] = (
        {"extra": 1},
        {"checks": []},
        {"version": "3"},
        {"schema": "kdoctor/checklist/v2"},
    )
    for wrong in wrongs:
        assert not validator.is_valid({**document, **wrong})


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_mangled_checklist_ends_in_a_checklist_or_in_a_clear_error(
    tmp_path: Path, catalog: Catalog, data: st.DataObject
) -> None:
    content = FULL.encode()
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 12)))
    middle = data.draw(
        st.one_of(st.binary(max_size=6), st.text("{}[]:,-&*!?|>'\"#%@` \n\t1a~", max_size=6).map(str.encode))
    )
    broken: tuple[Problem, ...] = ()
    try:
        assert read(tmp_path, catalog, content[:start] + middle + content[end:]).entries
    except ChecklistError as error:
        broken = error.problems or (Problem(line=-1, column=-1, message="told nothing"),)
    assert all(problem.line is None or problem.line > 0 for problem in broken)
