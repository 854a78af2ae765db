from pathlib import Path

import pytest

from helpers.kdoctor_fleet.fleets import fact, fleet_of, merged, names_of
from kdoctor.errors import UsageError
from kdoctor_fleet.facts import NodeState
from kdoctor_fleet.history import history_of, read_history
from kdoctor_fleet.report import FleetDocument, make_document

ONE, TWO, THREE, FOUR = names_of(4)
PASSED, FAILED, SILENT = NodeState.PASSED, NodeState.FAILED, NodeState.SILENT


def run(day: int, *, bad: tuple[int, ...] = (), silent: int = 0) -> FleetDocument:
    planted = {index: [fact("libraries", "cudnn", "9.1.0")] for index in bad}
    report = merged(fleet_of(4, planted)[: 4 - silent], names=tuple(names_of(4)))
    return make_document(report).model_copy(update={"merged_at": f"2025-01-{day:02}T04:00:00+00:00"})


def test_nodes_have_their_states_in_order_of_time() -> None:
    history = history_of([("c", run(3, silent=1)), ("a", run(1)), ("b", run(2, bad=(2,)))])
    assert [entry.source for entry in history.runs] == ["a", "b", "c"]
    by_name = {node.name: node for node in history.nodes}
    assert sorted(by_name) == [TWO, FOUR]
    assert by_name[TWO].states == (PASSED, FAILED, PASSED)
    assert by_name[FOUR].states == (PASSED, PASSED, SILENT)
    assert by_name[FOUR].since.startswith("2025-01-03")
    assert [node.name for node in history.nodes] == [FOUR, TWO]  # what does not pass now comes first


def test_state_begins_with_its_first_run_in_a_row_and_changes_are_counted() -> None:
    days = {1: (2,), 2: (), 3: (2,), 4: (2,)}
    (node,) = history_of([("", run(day, bad=bad)) for day, bad in days.items()]).nodes
    assert (node.since[:10], node.changes) == ("2025-01-03", 2)


def test_healthy_fleet_has_no_node_to_show() -> None:
    fewer = run(2).model_copy(update={"nodes": run(2).nodes[1:]})
    history = history_of([("", run(1)), ("", fewer)])
    assert history.nodes == ()
    assert history.runs[0].states == {PASSED: 4}
    assert len(history.to_text().splitlines()) == 3


def test_equal_histories_are_one_line() -> None:
    text = history_of([("", run(1)), ("", run(2, bad=(2, 3, 4)[:1])), ("", run(3, silent=2))]).to_text()
    assert "..-  node[0003-0004]  since 2025-01-03" in text


def test_folder_is_read_and_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no reports"):
        read_history([tmp_path])
    (tmp_path / "monday.json").write_text(run(1).to_json())
    assert len(read_history([tmp_path]).runs) == 1
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(UsageError, match=r"other\.json"):
        read_history([tmp_path])
