import json
import shlex

import pytest

from kdoctor_fleet.exclusion import CONDITION, ENGINES, TAINT, exclusions
from kdoctor_fleet.names import fold

FAILING, BROKEN, LISTS = ["n3", "n4"], ["n4"], "kdoctor fleet merge reports --lists ."


def test_each_engine_has_its_own_words() -> None:
    found = {item.engine: item for item in exclusions(FAILING, BROKEN, "GPU 3 is\nlost", LISTS, fold)}
    assert tuple(found) == ENGINES
    assert found["slurm"].leave_out == ("sbatch '--exclude=n[3-4]' job.sh",)
    assert shlex.split(found["slurm"].drain[0])[3:] == ["nodename=n4", "state=drain", "reason=kdoctor: GPU 3 is lost"]
    assert "values: [n3, n4]" in found["kubernetes"].leave_out[0]
    taint, label, patch = map(shlex.split, found["kubernetes"].drain)
    assert taint[-2:] == ["n4", f"{TAINT}=true:NoSchedule"]
    assert label[-2:] == ["n4", f"{TAINT}=true"]
    (condition,) = json.loads(patch[-1].partition("=")[2])["status"]["conditions"]
    assert (condition["type"], condition["message"]) == (CONDITION, "kdoctor: GPU 3 is lost")
    assert (found["hosts"].leave_out, found["hosts"].drain) == ((LISTS,), ())


@pytest.mark.parametrize("reason", ["it's; reboot", "$(reboot)", "`reboot`", "x" * 500, 'a" b'])
def test_reason_is_one_quoted_word(reason: str) -> None:
    for item in exclusions(FAILING, BROKEN, reason, LISTS, fold):
        for command in item.drain:
            words = shlex.split(command)
            assert words[0] in ("sudo", "kubectl")
            assert not {"reboot", "$(reboot)", "`reboot`"} & set(words)


def test_fleet_without_failures_needs_no_words() -> None:
    assert exclusions([], [], "", LISTS, fold) == ()
    assert all(not item.drain for item in exclusions(FAILING, [], "", LISTS, fold))
    assert exclusions(FAILING, [], "", "", fold)[-1].leave_out == ()
