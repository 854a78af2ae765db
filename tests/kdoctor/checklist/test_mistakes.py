from __future__ import annotations

from pathlib import Path

import pytest

from helpers.catalogs import small_catalog
from helpers.checklist_texts import CHECKS, HEAD, NO_SCENARIOS, read, told
from kdoctor.checklist.problems import ChecklistError
from kdoctor.engine.catalog import Catalog


@pytest.fixture
def catalog() -> Catalog:
    return small_catalog()


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
