from pathlib import Path

import pytest

from helpers.kdoctor_fleet.fleets import fact, fleet_of, merged, names_of
from kdoctor.errors import UsageError
from kdoctor_fleet.diff import compare, read_report
from kdoctor_fleet.formats import render
from kdoctor_fleet.report import make_document

OLD = {3: [fact("libraries", "cudnn", "9.1.0")], 5: [fact("packages", "keras", "3.6.0")]}
NEW = {5: [fact("packages", "keras", "3.6.0")], 6: [fact("packages", "keras", "3.6.0")]}


def test_changes_of_nodes_and_problems_are_named() -> None:
    old, new = merged(fleet_of(8, OLD)), merged(fleet_of(7, NEW), names=tuple(names_of(9)))
    found = compare(make_document(old), make_document(new))
    assert [(node.name, node.old and node.old.value, node.new and node.new.value) for node in found.nodes] == [
        ("node0006", "passed", "failed"),
        ("node0008", "passed", "silent"),
        ("node0009", None, "silent"),
        ("node0003", "failed", "passed"),
    ]
    assert [(item.check, item.came, item.went) for item in found.problems] == [
        ("cluster.frameworks", ("node0006",), ()),
        ("cluster.cuda-libraries", (), ("node0003",)),
    ]
    assert "node0006: passed -> failed" in found.to_text()


def test_equal_runs_have_no_difference() -> None:
    document = make_document(merged(fleet_of(2)))
    found = compare(document, document)
    assert (found.nodes, found.problems) == ((), ())


def test_files_are_read(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(render(merged(fleet_of(3)), "json"))
    new.write_text(render(merged(fleet_of(2)), "json"))
    assert [(node.name, node.new) for node in compare(read_report(old), read_report(new)).nodes] == [("node0003", None)]


@pytest.mark.parametrize("content", ["", "{}", '{"schema": "kdoctor/fleet/v2"}', "[1]"])
def test_other_files_are_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(content)
    with pytest.raises(UsageError, match="not the report of a fleet"):
        compare(read_report(file), read_report(file))
    with pytest.raises(UsageError, match="No such file"):
        compare(read_report(tmp_path / "absent.json"), read_report(file))
    with pytest.raises(UsageError) as caught:
        read_report(tmp_path)
    assert "kdoctor fleet merge" in (caught.value.hint or "")
