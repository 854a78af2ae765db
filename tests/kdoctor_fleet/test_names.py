import sys
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.command import captured
from kdoctor.errors import UsageError
from kdoctor_fleet.names import expand, fold, is_valid, read_names


@cases(
    (["node03", "node17", "node18", "node19"], "node[03,17-19]"),
    (["ip-10-0-3-4", "ip-10-0-4-4"], "ip-10-0-[3-4]-4"),
    (["login"], "login"),
    ([], ""),
)
def test_names_are_folded(names: list[str], folded: str) -> None:
    assert fold(names) == folded


def test_folded_names_expand_to_themselves() -> None:
    names = [f"rack{rack}-node{node:02}" for rack in range(1, 5) for node in range(1, 17, 3)]
    assert sorted(expand(fold(names), "a test")) == sorted(names)


@pytest.mark.parametrize("name", ["node1", "ip-10-0-0-1.ec2.internal", "a", "N_1"])
def test_names_of_hosts_are_valid(name: str) -> None:
    assert is_valid(name)


@cases("", ".", "..", "../x", "a/b", "a b", "a;b", "$(x)", "a\n", "-a", "a-", "<b>", "a" * 254, "node[1-2]", "é")
def test_other_text_is_not_a_name(name: str) -> None:
    assert not is_valid(name)


@pytest.mark.parametrize("text", ["node[1-", "@all", "", "a!a", "*", "$(reboot)", "a/b", "n[1-9999]m[1-9999]"])
def test_text_that_is_no_set_of_nodes_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--expect: "):
        expand(text, "--expect")


def test_file_of_names_has_comments_and_sets(tmp_path: Path) -> None:
    file = tmp_path / "nodes.txt"
    file.write_text("# the rack\nnode[01-02]\n\nlogin1  # not for jobs\nnode02\n")
    assert read_names(file) == ("node01", "node02", "login1")


@pytest.mark.parametrize(("text", "place"), [("a\nb[1-\n", ":2"), ("# nothing\n", "names no node")])
def test_broken_file_of_names_is_refused_with_its_line(text: str, place: str, tmp_path: Path) -> None:
    file = tmp_path / "nodes.txt"
    file.write_text(text)
    with pytest.raises(UsageError, match=place):
        read_names(file)


def test_help_needs_no_extra_and_a_command_says_which_one() -> None:
    program = "import sys; sys.modules['ClusterShell'] = None; from kdoctor.cli import main; main()"
    helped, run = (
        captured([sys.executable, "-c", program, "fleet", "run", *words])
        for words in (["--help"], ["--engine", "ssh", "--nodes", "node[1-2]"])
    )
    assert helped.returncode == 0
    assert (run.returncode, "-m pip install 'ClusterShell>=1.9'" in run.stderr) == (2, True)
