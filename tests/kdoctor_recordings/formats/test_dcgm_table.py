"""The table of ``dcgmi diag``. Results are invented, in the form of DCGM 3 and 4."""

from pathlib import Path

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import group, imported
from kdoctor_recordings.facts import Diagnostics, ImportedLines

HEAD = """\
Successfully ran diagnostic for group.
+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
|-----  Metadata  ----------+------------------------------------------------|
| DCGM Version              | {version}                                          |
| Driver Version Detected   | 580.105.08                                     |
| GPU Device IDs Detected   | 2330, 2330                                     |
|-----  Deployment  --------+------------------------------------------------|
"""
RULE = "+---------------------------+------------------------------------------------+"


def table(*rows: tuple[str, str], version: str = "4.4.2") -> str:
    return HEAD.format(version=version) + "".join(f"| {name:<26}| {value:<47}|\n" for name, value in rows) + RULE + "\n"


def results(folder: Path, text: str) -> list[tuple[str, str, str, str]]:
    facts = imported(folder, text).facts
    assert ImportedLines not in facts
    found = group(facts, Diagnostics)
    assert {item.tool for item in found.results} == {"dcgmi diag"}
    return [(item.test, item.subject, item.status, item.message) for item in found.results]


def test_results_of_dcgm_3(tmp_path: Path) -> None:
    warning = ("GPU 0 Thermal violations totaling 13.3 second", "s started at 9.7 seconds into the test")
    rows = (
        ("Denylist", "Pass"),
        ("PCIe", "Pass - All"),
        ("GPU Memory", "Pass - GPUs: 1, 2"),
        ("", "Fail - GPU: 0"),
        ("Warning", warning[0]),
        ("", warning[1]),
        ("Info", "GPU 1 max power: 299.5 W average power"),
        ("", "usage: 299.0 W"),
    )
    assert results(tmp_path, table(*rows, version="3.3.9")) == [
        ("Denylist", "node", "pass", ""),
        ("PCIe", "node", "pass", ""),
        ("GPU Memory", "GPU 1", "pass", ""),
        ("GPU Memory", "GPU 2", "pass", ""),
        ("GPU Memory", "GPU 0", "fail", "".join(warning)),
    ]


def test_first_of_the_messages_of_a_test_has_its_gpu_once(tmp_path: Path) -> None:
    rows = (
        ("PCIe", "Fail - All"),
        ("Warning", "GPU 0GPU 0's NvLink link 0 is currently down"),
        ("", ", look there., GPU 0GPU 0's NvLink link 1"),
    )
    found = results(tmp_path, table(*rows, version="2.4.6"))
    assert found == [("PCIe", "node", "fail", "GPU 0's NvLink link 0 is currently down , look there.")]


def test_results_of_dcgm_4(tmp_path: Path) -> None:
    rows = (
        ("software", "Pass"),
        ("", "GPU0: Pass"),
        ("", "GPU1: Pass"),
        ("memory", "Fail"),
        ("", "GPU0: Pass"),
        ("", "GPU1: Fail"),
        ("Warning: GPU1", "a fault"),
        ("pcie", "Skip"),
    )
    assert results(tmp_path, table(*rows)) == [
        ("software", "GPU 0", "pass", ""),
        ("software", "GPU 1", "pass", ""),
        ("memory", "GPU 0", "pass", ""),
        ("memory", "GPU 1", "fail", "a fault"),
        ("pcie", "node", "skip", ""),
    ]


@cases("+-----  Integration  -------+-----------------------------------------------+\n", "")
def test_part_of_the_table_is_read(tmp_path: Path, title: str) -> None:
    assert results(tmp_path, title + "| PCIe                      | Fail - GPU: 0 |\n") == [
        ("PCIe", "GPU 0", "fail", "")
    ]


@cases(
    ((("Error", "GPU 3 has uncorrectable memory errors"),), ("Deployment", "GPU 3", "fail")),
    ((("pcie", "Fail"), ("Warning", "internal error")), ("pcie", "node", "fail")),
    ((("Targeted Stress", "Warn - GPU: 2"),), ("Targeted Stress", "GPU 2", "warn")),
    ((("Targeted Stress", "Something else"),), ("Targeted Stress", "node", "unknown")),
)
def test_result_of_one_test(tmp_path: Path, rows: tuple[tuple[str, str], ...], expected: tuple[str, ...]) -> None:
    assert [found[:3] for found in results(tmp_path, table(*rows))] == [expected]


@cases(
    # The result of the test alone adds nothing to those of its GPUs, unless it is another fault.
    ((("memory", "Fail"), ("", "GPU0: Fail"), ("", "GPU1: Pass")), [("GPU 0", "fail"), ("GPU 1", "pass")]),
    ((("memory", "Pass"), ("", "GPU0: Fail")), [("GPU 0", "fail")]),
    ((("memory", "Skip"), ("", "GPU0: Pass")), [("GPU 0", "pass")]),
    ((("memory", "Fail"), ("", "GPU0: Pass")), [("node", "fail"), ("GPU 0", "pass")]),
    ((("memory", "Fail"), ("", "GPU0: Warn")), [("node", "fail"), ("GPU 0", "warn")]),
    ((("memory", "Not Run"),), [("node", "skip")]),
    ((("memory", "Fail - GPUs: 0, 2,3"),), [("GPU 0", "fail"), ("GPU 2", "fail"), ("GPU 3", "fail")]),
    ((("memory", "Fail - All"),), [("node", "fail")]),
    ((("memory", "FAIL"),), [("node", "fail")]),
)
def test_result_of_a_test_and_of_its_gpus(
    tmp_path: Path, rows: tuple[tuple[str, str], ...], expected: list[tuple[str, str]]
) -> None:
    assert [found[1:3] for found in results(tmp_path, table(*rows))] == expected


@cases(
    # A message that names a GPU belongs to that GPU.
    (
        (("memory", "Fail - GPUs: 1, 2"), ("Warning", "GPU 1 is bad"), ("Warning", "GPU 2 is worse")),
        {"GPU 1": "GPU 1 is bad", "GPU 2": "GPU 2 is worse"},
    ),
    # GPU 1 is not GPU 11, whose message counts for all without one.
    ((("memory", "Fail - GPUs: 1"), ("Warning", "GPU 11 is bad")), {"GPU 1": "GPU 11 is bad"}),
    ((("memory", "Fail - GPUs: 1"), ("Warning", "first"), ("Warning", "second")), {"GPU 1": "first; second"}),
    ((("memory", "Warn - GPUs: 1"), ("Warning", "hot")), {"GPU 1": "hot"}),
    ((("memory", "Pass - GPUs: 1"), ("Warning", "hot")), {"GPU 1": ""}),
    ((("memory", "Skip - GPUs: 1"), ("Warning", "hot")), {"GPU 1": ""}),
    ((("memory", "Fail"), ("Info", "not a fault"), ("", "of any GPU")), {"node": ""}),
    ((("memory", "Fail"), ("Warning", "a fault"), ("Info", "not a fault"), ("", "at all")), {"node": "a fault"}),
    ((("memory", "Fail"), ("Warning", ""), ("Warning", "a fault")), {"node": "a fault"}),
    # A word at the end of a full row and the one after it are two words if a space was between them.
    ((("memory", "Fail"), ("Warning", "x" * 44 + " "), ("", "more")), {"node": "x" * 44 + " more"}),
    ((("memory", "Fail"), ("Warning", "x" * 45), ("", "more")), {"node": "x" * 45 + "more"}),
)
def test_message_of_a_result(tmp_path: Path, rows: tuple[tuple[str, str], ...], expected: dict[str, str]) -> None:
    found = results(tmp_path, table(*rows))
    assert {subject: message for test, subject, _, message in found if test == "memory"} == expected


@cases(
    ((("Error", "the service stopped"),), [("Deployment", "node", "fail", "the service stopped")]),
    (
        (("pcie", "Pass"), ("Error", "GPU 1 and GPU 2 failed")),
        [("pcie", "node", "pass", ""), ("pcie", "GPU 1", "fail", "GPU 1 and GPU 2 failed")],
    ),
    ((("pcie", "Fail - GPU: 1"), ("Error", "GPU 1 failed")), [("pcie", "GPU 1", "fail", "GPU 1 failed")]),
    (
        (("pcie", "Warn - GPU: 1"), ("Error", "GPU 1 failed")),
        [("pcie", "GPU 1", "warn", "GPU 1 failed"), ("pcie", "GPU 1", "fail", "GPU 1 failed")],
    ),
    # An error of one test is not one of the next.
    (
        (("pcie", "Fail"), ("Error", "a fault"), ("memory", "Pass")),
        [("pcie", "node", "fail", "a fault"), ("memory", "node", "pass", "")],
    ),
    ((("pcie", "Fail"), ("-> a subtest", "Pass"), ("", "GPU0: Fail")), [("pcie", "GPU 0", "fail", "")]),
)
def test_error_is_a_failure_of_its_test(
    tmp_path: Path, rows: tuple[tuple[str, str], ...], expected: list[tuple[str, str, str, str]]
) -> None:
    assert results(tmp_path, table(*rows)) == expected


def test_rows_of_the_metadata_are_not_tests(tmp_path: Path) -> None:
    title = "|-----  {}  ----------+------------------------------------------------|\n"
    text = table(("software", "Pass"))
    more = title.format("Hardware") + "| memory                    | Fail                                           |\n"
    text = text.replace(RULE + "\n", "", 1).removesuffix(RULE + "\n")
    assert [found[:3] for found in results(tmp_path, text + more)] == [
        ("software", "node", "pass"),
        ("memory", "node", "fail"),
    ]
    again = (
        title.format("Metadata") + "| memory                    | Fail                                           |\n"
    )
    assert [found[:3] for found in results(tmp_path, text + again)] == [("software", "node", "pass")]


def test_two_tables_and_a_line_between_them(tmp_path: Path) -> None:
    first, second = table(("pcie", "Pass"), ("Warning", "slow")), table(("memory", "Fail"))
    found = group(imported(tmp_path, f"{first}\nanother line\n{second}").facts, Diagnostics)
    assert [(item.test, item.status, item.message) for item in found.results] == [
        ("pcie", "pass", ""),
        ("memory", "fail", ""),
    ]
