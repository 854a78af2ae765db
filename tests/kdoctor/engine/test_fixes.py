from dataclasses import replace

from helpers.reports import failure, finding
from kdoctor.engine.causes import find_causes, relevant
from kdoctor.engine.fixes import plan_fixes
from kdoctor.engine.report import Drift, DriftChange, FixStep, Result
from kdoctor.model import Remedy, Severity

AGAIN = "kdoctor check"
DRIFT = Drift(
    lock="my.lock.yaml",
    recorded="2030-01-01",
    changes=(
        DriftChange(fact="packages.keras", old="3.15.1", new="3.6.0", explains=("versions.keras-compatible",)),
        DriftChange(fact="host.kernel", old="6.1", new="6.2"),
    ),
)


def remedy(*commands: str, look: tuple[str, ...] = ()) -> Remedy:
    return Remedy.configure("Fix it.", *commands, look=look)


def lost(*indices: int, check: str = "gpu.responding") -> Result:
    found = [finding(f"GPU {index} (0000:0{index}:00.0)", remedy=remedy("sudo reboot")) for index in indices]
    return failure(check, *found)


def steps(*results: Result, visible: tuple[int, ...] = (), **options: object) -> tuple[FixStep, ...]:
    return plan_fixes(relevant(find_causes(results)), AGAIN, visible=visible, **options)  # type: ignore[arg-type]


def test_gpus_of_several_causes_are_left_out_together() -> None:
    log = failure("gpu.kernel-log", finding("GPU 5", observed="Xid 119", remedy=remedy("reset 5")))
    first, *_ = steps(lost(2), log, visible=(0, 2, 4, 5))
    assert first.commands[1] == "export CUDA_VISIBLE_DEVICES=0,4"
    assert set(first.solves) == {"gpu.responding", "gpu.kernel-log"}
    assert "the other 2" in first.summary
    alone, *_ = steps(lost(0), visible=(0, 1))
    assert "GPU 1 alone" in alone.summary


def test_workaround_replaces_the_number_of_gpus() -> None:
    causes = find_causes([lost(1)])
    (first, _) = plan_fixes(causes, "kdoctor check --gpus 4 -c a.yaml", visible=(0, 1, 2, 3))
    assert first.check == "kdoctor check -c a.yaml --gpus 3"


def test_no_workaround_for_a_warning() -> None:
    fan = failure("gpu.fan", finding("GPU 1"), severity=Severity.WARNING)
    assert [step.kind for step in steps(fan, visible=(0, 1))] == ["fix"]


def test_rollback_comes_before_the_fix_of_what_a_change_explains() -> None:
    keras = failure("versions.keras-compatible", finding("keras", remedy=remedy("pip install keras")))
    swap = failure("host.swap", finding("swap", remedy=remedy("swapoff")))
    wrong = failure("smoke.baseline", finding("mirrored", explained_by=("versions.keras-compatible",)))
    of_effect = replace(DRIFT, changes=(replace(DRIFT.changes[0], explains=("smoke.baseline",)),))
    first, *_ = steps(keras, wrong, drift=of_effect, rollback="back")
    assert (first.kind, first.solves) == ("rollback", ("versions.keras-compatible",))
    back, *fixes = steps(keras, swap, drift=DRIFT, rollback="kdoctor rollback --fix-script back.sh")
    assert (back.kind, back.commands) == ("rollback", ("kdoctor rollback --fix-script back.sh",))
    assert back.solves == ("versions.keras-compatible",)
    assert "packages.keras 3.15.1 -> 3.6.0" in back.summary
    assert [step.commands for step in fixes] == [("pip install keras",), ("swapoff",)]


def test_two_changes_are_named_and_the_others_are_counted() -> None:
    keras = failure("versions.keras-compatible", finding("keras", remedy=remedy("pip install keras")))
    explains = ("versions.keras-compatible",)
    changes = tuple(
        DriftChange(fact=f"packages.p{number}", old=None, new="1", explains=explains if number < 3 else ())
        for number in range(4)
    )
    drift = Drift(lock="my.lock.yaml", recorded="2030-01-01", changes=changes)
    back, *_ = steps(keras, drift=drift, rollback="kdoctor rollback --fix-script back.sh")
    assert "packages.p1 absent -> 1" in back.summary
    assert "packages.p2" not in back.summary
    assert "2 more changes" in back.summary


def test_no_rollback_if_no_change_explains_a_cause() -> None:
    swap = failure("host.swap", finding("swap", remedy=remedy("swapoff")))
    assert [step.kind for step in steps(swap, drift=DRIFT, rollback="kdoctor rollback")] == ["fix"]


def test_command_is_in_one_step_only() -> None:
    one = failure("gpu.free", finding("A", remedy=remedy("read", "fix a", look=("dmesg",))))
    two = failure("gpu.clocks", finding("B", remedy=remedy("read", "fix b", look=("dmesg", "fix a"))))
    first, second = steps(one, two)
    assert (first.commands, first.look) == (("read", "fix a"), ("dmesg",))
    assert (second.commands, second.look) == (("fix b",), ())


def test_failure_for_information_has_no_step() -> None:
    assert steps(failure("gpu.power-limit", severity=Severity.INFO)) == ()


def test_no_rollback_if_there_is_nothing_to_restore() -> None:
    keras = failure("versions.keras-compatible", finding("keras", remedy=remedy("pip install keras")))
    for options in ({"drift": DRIFT}, {"rollback": "kdoctor rollback"}):
        assert [step.kind for step in steps(keras, **options)] == ["fix"]
