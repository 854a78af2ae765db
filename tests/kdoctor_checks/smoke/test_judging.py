"""What the checks of trainings share: who is judged, how trainings are compared, and what is said about them."""

from dataclasses import replace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import packages, smoke_case, smoke_run, target
from kdoctor.facts import SmokeCase, Unavailable, Weights
from kdoctor.model import Action, Evidence, Finding, NotApplicable, Outcome, Unjudged
from kdoctor_checks.smoke._judging import (
    Comparison,
    bit_equal,
    brief_end,
    did_not_finish,
    evidence,
    fit_unsupported,
    judge_cases,
    losses_match,
    not_replicated,
    requested_replicas,
    summarize,
    training,
    weights_problem,
)

RAISED: dict[str, Any] = {
    "outcome": "raised", "phase": "train", "error_type": "ValueError", "error_message": "no", "weights": None,
}  # fmt: skip
UNREAD = Unavailable(unavailable="not read")


def judged(case: SmokeCase | None, **options: Any) -> Outcome:
    """The only outcome of a case on two requested replicas; its judge yields evidence."""
    run = smoke_run("smoke.test", 2, *([case] if case else [smoke_case("other", 2)]))
    (only,) = judge_cases(run, ["mirrored"], lambda found: evidence(found, "judged"), **options)
    return only


def test_case_is_judged() -> None:
    found = judged(smoke_case(replicas=2))
    assert isinstance(found, Evidence)
    assert (found.subject, found.observed) == ("MirroredStrategy", "judged")
    assert training("no-batch") == "training no-batch"


def test_case_without_a_result_says_why() -> None:
    missing = judged(None)
    assert isinstance(missing, Unjudged)
    assert missing.reason == "the run ended before it had a result"
    run = smoke_run("smoke.test", 2, smoke_case("other", 2), failure="it died")
    first, second = judge_cases(run, ["mirrored", "other"], lambda case: evidence(case, "judged"))
    assert isinstance(first, Unjudged)
    assert first.reason == "it died"
    assert isinstance(second, Evidence)  # the next case is still judged


def test_skipped_case_leaves_the_next_one() -> None:
    skipped = smoke_case("skipped", 2, outcome="skipped", skip_reason="no port")
    run = smoke_run("smoke.test", 2, skipped, smoke_case(replicas=2))
    first, second = judge_cases(run, ["skipped", "mirrored"], lambda case: evidence(case, "judged"))
    assert (type(first), type(second)) == (NotApplicable, Evidence)


@cases(
    ({"replicas": 1}, {}, Unjudged),  # one of two replicas was made
    ({"replicas": 1}, {"replicated": False}, Evidence),
    ({"replicas": None}, {}, Unjudged),
    ({"replicas": None, **RAISED}, {}, Finding),  # it ended before replicas were counted
    ({"replicas": 1, **RAISED}, {}, Unjudged),
    (RAISED, {}, Finding),
    (RAISED, {"trained": False}, Evidence),
    (RAISED, {"refusals": ("ValueError",)}, Evidence),
    (RAISED, {"refusals": ("TypeError",)}, Finding),
    ({**RAISED, "phase": "import"}, {"refusals": ("ValueError",)}, Finding),  # not the model was refused
    ({**RAISED, "phase": "step 3"}, {"refusals": ("ValueError",)}, Evidence),
)
def test_who_is_judged(changes: dict[str, Any], options: dict[str, Any], expected: type[Outcome]) -> None:
    assert isinstance(judged(replace(smoke_case(replicas=2), **changes), **options), expected)


@cases(
    (2, {"replicas_agree": None}, Unjudged),
    (2, {"replicas_agree": True}, Evidence),
    (2, {"replicas_agree": None, "mirrored": 0}, Evidence),  # there are no copies
    (2, {"replicas_agree": None, "mirrored": 1}, Unjudged),
    (1, {"replicas_agree": None}, Evidence),
    (None, {"replicas_agree": None}, Evidence),
)
def test_copies_that_were_not_compared_are_no_evidence(
    replicas: int | None, weights: dict[str, Any], expected: type[Outcome]
) -> None:
    found = Weights(**{"variables": 6, "mirrored": 6, "nonfinite": (), **weights})
    case = replace(smoke_case(replicas=2, weights=found), replicas=replicas)
    assert isinstance(judged(case, replicated=False), expected)


def test_finding_does_not_need_the_comparison_of_the_copies() -> None:
    case = smoke_case(replicas=2, weights=Weights(variables=6, mirrored=6, nonfinite=(), replicas_agree=None))
    run = smoke_run("smoke.test", 2, case)
    (only,) = judge_cases(run, ["mirrored"], lambda found: did_not_finish(run, found))
    assert isinstance(only, Finding)


def test_replicas_are_those_requested_or_all_gpus() -> None:
    assert requested_replicas(smoke_run(replicas=2, gpus_seen=8)) == 2
    assert requested_replicas(smoke_run(replicas=2, replicas_requested=None, gpus_seen=8)) == 8
    one = smoke_run("smoke.test", 1)
    assert isinstance(not_replicated(one, smoke_case(replicas=1)), NotApplicable)
    two = smoke_run("smoke.test", 2)
    assert not_replicated(two, smoke_case(replicas=2)) is None
    fewer = not_replicated(two, smoke_case(replicas=1))
    assert isinstance(fewer, Unjudged)
    assert fewer.reason == "TensorFlow made 1 of 2 replicas"
    on_jax = not_replicated(replace(two, jax="0.7.0"), smoke_case(replicas=1))
    assert isinstance(on_jax, Unjudged)
    assert on_jax.reason.startswith("JAX made 1")
    assert not_replicated(two, smoke_case(replicas=3)) is None
    assert isinstance(not_replicated(two, smoke_case(replicas=2, devices=("GPU:0", "CPU:0"))), Unjudged)
    unknown = not_replicated(replace(two, replicas_requested=None, gpus_seen=None), smoke_case(replicas=2))
    assert isinstance(unknown, Unjudged)


@cases(
    (RAISED, "raises ValueError in phase train"),
    ({**RAISED, "error_type": "E" * 50}, f"raises {'E' * 50}"),
    ({**RAISED, "error_type": "E" * 90}, "raises an error"),
    ({"outcome": "timed-out", "phase": "trace"}, "hangs in phase trace"),
    ({"outcome": "timed-out", "phase": None}, "hangs before its first phase"),
    ({"outcome": "died", "signal": "SIGSEGV", "exit_code": None}, "crashes (SIGSEGV)"),
    ({"outcome": "died", "signal": None, "exit_code": 3}, "crashes (exit status 3)"),
)
def test_end_has_a_short_form(changes: dict[str, Any], brief: str) -> None:
    assert brief_end(smoke_case(**changes)) == brief


HUNG: dict[str, Any] = {"outcome": "timed-out", "phase": "trace"}
DIED: dict[str, Any] = {"outcome": "died", "signal": "SIGSEGV"}


@cases(
    (HUNG, {}, Action.CONFIGURE, "NCCL"),
    (HUNG, {"devices_kind": "cpu"}, Action.CONFIGURE, "busy machine"),
    ({**DIED, "signal": "SIGKILL"}, {}, Action.CONFIGURE, "memory"),
    (DIED, {}, Action.REINSTALL, "TensorFlow and its CUDA libraries"),
    (DIED, {"jax": "0.7.0"}, Action.REINSTALL, "JAX and its CUDA libraries"),
    (DIED, {"torch": "2.7.0", "tensorflow": None}, Action.REINSTALL, "torch and its CUDA libraries"),
    (RAISED, {}, Action.REINSTALL, "TensorFlow 2.21.0 or keras 3.15.1"),
    (RAISED, {"jax": "0.7.0"}, Action.REINSTALL, "JAX 0.7.0 or keras 3.15.1"),
    (RAISED, {"torch": "2.7.0", "tensorflow": None}, Action.REINSTALL, "torch 2.7.0 or keras 3.15.1"),
    (RAISED, {"keras": None, "tensorflow": None}, Action.REINSTALL, "TensorFlow or this Keras so"),
)
def test_fix_depends_on_the_end(
    changes: dict[str, Any], run_changes: dict[str, Any], action: Action, part: str
) -> None:
    case = smoke_case(replicas=2, **changes)
    found = did_not_finish(smoke_run("smoke.test", 2, case, **run_changes), case)
    assert found.remedy.action is action
    assert part in found.remedy.summary
    assert found.expected == f"it trains on 2 {'devices' if run_changes.get('jax') else 'replicas'}"
    everything = smoke_run("smoke.test", 2, case, replicas_requested=None, gpus_seen=None)
    assert did_not_finish(everything, case).expected == "it trains on all replicas"


def compared(
    run_changes: dict[str, Any] | None = None, *, options: dict[str, Any] | None = None, **changes: Any
) -> Outcome:
    case = smoke_case(**{"replicas": 2, **changes})
    run = smoke_run("smoke.test", 2, case, **(run_changes or {}))
    return Comparison(**{"run": run, "target": UNREAD, "packages": UNREAD, **(options or {})}).judge(case)


@pytest.mark.parametrize(("deviation", "expected"), [(0.001, Evidence), (0.0011, Finding)])
def test_weights_may_differ_by_the_tolerance(deviation: float, expected: type[Outcome]) -> None:
    assert isinstance(compared(options={"tolerance": 0.001}, weight_deviation=deviation), expected)


def test_difference_states_the_numbers_and_the_versions() -> None:
    found = compared(options={"tolerance": 0.001}, weight_deviation=0.25)
    assert isinstance(found, Finding)
    assert found.observed == "weights differ by up to 0.25, above the tolerance of 0.001 (keras 3.15.1, 2 replicas)"
    assert found.brief == "weights differ from one device's"
    assert found.expected == "the same as on one device with the same global batches"
    numpy = compared(options={"reference": "NumPy"}, weight_deviation=None)
    assert isinstance(numpy, Unjudged)
    assert numpy.reason == "its weights were not compared with NumPy"
    wrong = compared({"jax": "0.7.0", "keras": None}, options={"reference": "NumPy"}, losses=(1.0, 0.7))
    assert isinstance(wrong, Finding)
    assert wrong.observed == "reported losses are 1, 0.7 instead of 1, 0.5 (Keras unknown on JAX 0.7.0, 2 devices)"
    assert wrong.expected.startswith("the same as in NumPy")


def test_fix_of_a_wrong_keras_is_another_one() -> None:
    """Keras 3.6 sums gradients, and 3.10 is the first that does not."""
    wrong = compared({"keras": "keras 3.6.0"}, weight_deviation=0.25)
    assert isinstance(wrong, Finding)
    assert wrong.remedy.action is Action.REINSTALL
    assert wrong.remedy.commands[0].startswith("pip install 'keras>=3.10")
    assert wrong.rollback.commands == ("pip install keras==3.6.0",)
    parts: list[dict[str, Any]] = [{"target": target()}, {"packages": packages()}]
    for unread in parts:
        partly = compared({"keras": "keras 3.6.0"}, weight_deviation=0.25, options=unread)
        assert isinstance(partly, Finding)
        assert partly.remedy.commands == wrong.remedy.commands
    known = compared(
        {"keras": "keras 3.6.0"}, weight_deviation=0.25, options={"target": target(), "packages": packages()}
    )
    assert isinstance(known, Finding)
    assert known.remedy.commands[0] != wrong.remedy.commands[0]  # with the interpreter and the installer of the job
    right = compared({"keras": "keras 3.15.1"}, weight_deviation=0.25)
    assert isinstance(right, Finding)
    assert right.remedy.action is Action.CHANGE_CODE


@cases(
    ({}, True, None),
    ({"variables": 0}, True, "no trainable variables"),
    ({"mirrored": 5}, True, "only 5 of 6 trainable variables are mirrored"),
    ({"mirrored": 5}, False, None),
    ({"nonfinite": ("a",)}, True, "NaN or infinity in a"),
    ({"replicas_agree": False}, True, "different weights"),
    ({"replicas_agree": None}, True, None),
)
def test_problems_of_the_weights(weights: dict[str, Any], *, mirrored: bool, part: str | None) -> None:
    found = weights_problem(
        Weights(**{"variables": 6, "mirrored": 6, "nonfinite": (), "replicas_agree": True, **weights}),
        mirrored=mirrored,
    )
    assert (found is None) if part is None else (found is not None and part in found.observed)


@cases(
    ((1.0, 0.5), (1.0, 0.5), True), ((1.0,), (1.0, 0.5), False), ((1.0, None), (1.0, None), False),
    ((1.0, 0.5), (1.0, None), False), ((1.0,), (1.009,), True), ((1.0,), (1.02,), False),
    ((0.0,), (0.00099,), True), ((0.0,), (0.0011,), False), ((), (), True),
)  # fmt: skip
def test_losses_match_within_the_tolerance(
    losses: tuple[float | None, ...], others: tuple[float | None, ...], *, equal: bool
) -> None:
    """1 %, and near zero a tenth of that."""
    assert losses_match(losses, others, 0.01) is equal


def test_good_training_in_one_line() -> None:
    run = smoke_run("smoke.test", 2)
    assert summarize(run, smoke_case(replicas=2, weight_deviation=0.25, step_s=0.0125)) == (
        "MirroredStrategy, 2 replicas (gpu), losses 1, 0.5; weights within 0.25 of one device; step 0.0125 s"
    )
    bare = replace(smoke_case(replicas=2), weight_deviation=None, step_s=None, strategy=None, replicas=None)
    assert summarize(run, bare) == "strategy unknown, unknown number of replicas (gpu), losses 1, 0.5"
    assert "1 device (gpu)" in summarize(replace(run, jax="0.7.0"), smoke_case(replicas=1))


def test_fit_that_does_not_work_is_described() -> None:
    run = smoke_run("smoke.test", 2)
    failed = fit_unsupported(run, smoke_case(replicas=2, **RAISED), "XStrategy", "another")
    assert failed.observed == "keras 3.15.1 cannot fit under XStrategy: ValueError in phase train: no"
    assert failed.brief == "fit fails under XStrategy"
    wrong = fit_unsupported(run, smoke_case(replicas=2, weight_deviation=0.25), "XStrategy", "another")
    assert wrong.observed == (
        "keras 3.15.1 trains incorrectly under XStrategy: losses are 1, 0.5 instead of 1, 0.5; "
        "weights differ by up to 0.25"
    )
    assert wrong.brief == "fit trains incorrectly under XStrategy"
    bare = smoke_case(replicas=2, weight_deviation=None, reference_losses=())
    assert fit_unsupported(replace(run, keras=None), bare, "XStrategy", "another").observed == (
        "this Keras trains incorrectly under XStrategy: losses are 1, 0.5"
    )


@cases(
    ({"variables": 6.0, "equal on cpu": 6.0, "equal on gpu": 6.0}, Evidence, "6 variables, all bit-equal on cpu, gpu"),
    ({"variables": 6.0, "equal on cpu": 6.0, "equal on gpu": 5.0}, Finding, "only 5 of 6 variables are equal on gpu"),
    ({"variables": 6.0, "equal on gpu": None}, Finding, "only 0 of 6 variables are equal on gpu"),
    ({"variables": 6.0}, Unjudged, "nothing was compared"),
    ({"equal on cpu": 6.0}, Unjudged, "nothing was compared"),
    ({"variables": 0.0, "equal on cpu": 0.0}, Unjudged, "nothing was compared"),
)
def test_saved_variables_are_compared_bit_by_bit(
    measures: dict[str, float | None], expected: type[Outcome], part: str
) -> None:
    found = bit_equal(
        smoke_case(replicas=2, measures=measures), "equal on", expected="equal", remedy="save again",
        describe=lambda places, number: f"{number} on {', '.join(places)}",
    )  # fmt: skip
    assert isinstance(found, expected)
    assert part in (found.reason if isinstance(found, Unjudged | NotApplicable) else found.observed)
