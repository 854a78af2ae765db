"""The fixes for nodes that differ."""

import pytest

from helpers.cases import cases
from kdoctor_fleet.checks.cluster._compare import ABSENT, Difference
from kdoctor_fleet.checks.cluster._fixes import install_driver, set_variables


def differs(name: str, value: str, others: str) -> Difference:
    return Difference(name=name, label=name, value=value, others=others)


@pytest.mark.parametrize("others", ["<script>", ABSENT, "580; reboot"])
def test_driver_that_is_no_version_is_not_installed(others: str) -> None:
    remedy, _ = install_driver("node0002", [differs("version", "570.1", others)])
    assert remedy.commands == ()


def test_driver_of_the_other_nodes_is_installed() -> None:
    differences = [differs("flavour", "open", "proprietary"), differs("version", "570.1", "580.105.08")]
    remedy, _ = install_driver("node0002", differences)
    assert remedy.commands
    assert any("580" in command for command in remedy.commands)
    assert not any("570" in command for command in remedy.commands)
    assert "node0002" in remedy.summary


@cases(
    ("1", "0", ("export A=0",), ("export A=1",)),
    (ABSENT, "0", ("export A=0",), ("unset A",)),
    ("1", ABSENT, ("unset A",), ("export A=1",)),
    ("1", "withheld, sha 12", (), ("export A=1",)),
    ("withheld, sha 12", "0", ("export A=0",), ()),
)
def test_variables_are_set_and_restored(
    value: str, others: str, commands: tuple[str, ...], back: tuple[str, ...]
) -> None:
    remedy, rollback = set_variables("node0002", [differs("A", value, others), differs("no name", "1", "2")])
    assert remedy.commands == commands
    assert rollback.commands == back
    assert rollback.kind == ("commands" if back else "irreversible")
