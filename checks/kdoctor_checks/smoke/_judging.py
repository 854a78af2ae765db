"""Judges the cases of a smoke training: those that did not finish, and those that one device must match."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from kdoctor.commands.packages import first_accepted, install, restore
from kdoctor.commands.shell import quoted
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable, Weights
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Unjudged
from kdoctor.records import record
from kdoctor.text.lists import counted, some
from kdoctor_checks._causes import (
    WRONG_LOSSES,
    WRONG_WEIGHTS,
    has_keras,
    of_end,
    of_import,
    of_losses,
    of_replicas,
    of_weights,
)
from kdoctor_checks._versions import first_short
from kdoctor_checks.smoke._cases import describe_end, format_losses, in_phase, own_place, was_refused
from kdoctor_checks.smoke._frameworks import framework_and_version, framework_name, keras_of, this_keras

TENSORFLOW = ("versions.tensorflow-installed",)
"""What a check of a training on TensorFlow requires."""

NO_ROLLBACK = Rollback.nothing("not needed (kdoctor changed nothing)")

KILLED = Remedy.configure(
    "Free memory, or raise the container's memory limit: the kernel usually kills a process for running out of memory.",
    look=("free -h", "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.events"),
)

TOLERANCE = 1e-4
"""Largest difference of a weight that counts as equal. Measured: 0 to 2e-7 (float32 rounding) for a correct Keras,
0.03 and more where gradients are summed instead of averaged, or not reduced. See docs/smoke.md."""

FIXED_KERAS = "keras>=3.10"
"""The first release without the known defects."""

LOSS_TOLERANCE = 1e-3
"""Largest relative difference of a loss that counts as equal."""

_LOST_PEER = ("UnavailableError", "DeadlineExceededError", "AbortedError", "CancelledError")
"""What TensorFlow raises in a process of a cluster when another process stops responding."""


class Problem(NamedTuple):
    """What is wrong with the result of a training."""

    observed: str
    brief: str
    about: Literal["weights", "losses", "state"] = "state"
    """``weights`` and ``losses``: compared with one device."""


NONFINITE_LOSS = Problem("a loss is not finite", "a loss is not finite", "losses")

CaseJudge = Callable[[SmokeCase], "Outcome | Iterable[Outcome]"]


def subject(about: SmokeCase | str) -> str:
    """The subject of an outcome: a case, or what the string names."""
    return about if isinstance(about, str) else training(about.name)


def training(name: str) -> str:
    """What a case is called in reports."""
    return "MirroredStrategy" if name == "mirrored" else f"training {name}"


def evidence(about: SmokeCase | str, observed: str) -> Evidence:
    """Evidence about a case or another subject."""
    return Evidence(subject=subject(about), observed=observed)


def unknown(about: SmokeCase | str, reason: str, explained_by: tuple[str, ...] = ()) -> Unjudged:
    """A case or another subject that cannot be judged."""
    return Unjudged(subject=subject(about), reason=reason, explained_by=explained_by)


def finding(
    about: SmokeCase | str,
    observed: str,
    expected: str,
    remedy: Remedy | str,
    *,
    brief: str = "",
    explained_by: tuple[str, ...] = (),
) -> Finding:
    """A finding about a case or another subject. A remedy that is a string is a change of the user's code."""
    if isinstance(remedy, str):
        remedy = Remedy.change_code(remedy)
    return Finding(
        subject=subject(about),
        observed=observed,
        expected=expected,
        remedy=remedy,
        rollback=NO_ROLLBACK,
        brief=brief,
        explained_by=explained_by,
    )


def judge_cases(
    run: SmokeRun,
    names: Iterable[str],
    judge: CaseJudge,
    *,
    replicated: bool = True,
    trained: bool = True,
    refusals: Sequence[str] = (),
) -> Iterator[Outcome]:
    """Judge each case in turn.

    Args:
        run: the scenario's run.
        names: the cases, in order.
        judge: judges a case that has a result and was not skipped.
        replicated: leave out a case that did not train on all requested replicas, at least two.
        trained: report a case that did not finish, instead of judging it.
        refusals: errors with which the framework may refuse a case; a refusal is evidence.
    """
    for name in names:
        case = run.case(name)
        if case is None:
            reason = run.failure or "the run ended before it had a result"
            yield unknown(training(name), reason, of_import(run))
            continue
        if case.outcome == "skipped":
            yield NotApplicable(reason=case.skip_reason or "")
            continue
        knows_replicas = case.replicas is not None or case.outcome == "trained"
        left_out = not_replicated(run, case) if replicated and knows_replicas else None
        if left_out:
            yield left_out
        elif was_refused(case, refusals):
            yield evidence(case, f"refused: {describe_end(case)}")
        elif trained and case.outcome != "trained":
            yield did_not_finish(run, case)
        else:
            outcome = judge(case)
            outcomes = outcome if isinstance(outcome, Iterable) else (outcome,)
            yield from map(_without_agreement, outcomes) if _agreement_unread(case) else outcomes


def _agreement_unread(case: SmokeCase) -> bool:
    """Whether variables have copies on several replicas, and they were not compared."""
    weights = case.weights
    several = case.replicas is not None and case.replicas > 1
    return several and weights is not None and weights.mirrored > 0 and weights.replicas_agree is None


def _without_agreement(outcome: Outcome) -> Outcome:
    if not isinstance(outcome, Evidence):
        return outcome
    return Unjudged(subject=outcome.subject, reason="whether the replicas hold equal weights was not read")


def requested_replicas(run: SmokeRun) -> int | None:
    """Number of replicas that were requested."""
    return run.gpus_seen if run.replicas_requested is None else run.replicas_requested


def not_replicated(run: SmokeRun, case: SmokeCase) -> NotApplicable | Unjudged | None:
    """Why a case shows nothing about several replicas: one was requested, or fewer were made than requested."""
    requested = requested_replicas(run)
    if requested == 1:
        return NotApplicable(reason="the training has only one replica")
    if case.replicas is None or requested is None:
        return unknown(case, "the number of replicas is not known")
    if case.replicas < requested:
        reason = f"{framework_name(run)} made {case.replicas} of {counted(requested, 'replica')}"
        return unknown(case, reason, of_replicas(run))
    if run.devices_kind == "gpu" and case.on_gpus < len(case.devices):
        return unknown(
            case, f"{case.on_gpus} of {counted(len(case.devices), 'replica')} were on GPUs", of_replicas(run)
        )
    return None


def did_not_finish(run: SmokeRun, case: SmokeCase) -> Finding:
    """A case that raised, crashed or hung."""
    expected = f"it trains on {requested_replicas(run) or 'all'} {'devices' if run.jax else 'replicas'}"
    remedy, explained_by = _remedy(run, case), of_end(run, case)
    return finding(case, describe_end(case), expected, remedy, brief=brief_end(case), explained_by=explained_by)


def brief_end(case: SmokeCase) -> str:
    """The error, hang or crash that ended a case, without its message."""
    where = in_phase(case.phase)
    if case.outcome == "raised":
        return first_short(f"raises {case.error_type} {where}", f"raises {case.error_type}", "raises an error")
    if case.outcome == "timed-out":
        place = own_place(case.stacks)
        return first_short(*([f"hangs at {place}"] if place else []), f"hangs {where}", "hangs")
    return f"crashes ({case.signal or f'exit status {case.exit_code}'})"


def _remedy(run: SmokeRun, case: SmokeCase) -> Remedy:
    """What to do about a case that did not finish."""
    if case.outcome == "timed-out" and run.devices_kind == "gpu":
        return Remedy.configure(
            "Run the job with NCCL's log to see which GPUs wait for each other, then once without "
            "peer-to-peer transfers. If that helps, check IOMMU and PCIe ACS.",
            look=("export NCCL_DEBUG=INFO", "export NCCL_P2P_DISABLE=1  # for diagnosis only"),
        )
    if case.signal == "SIGKILL":
        return KILLED
    if case.outcome == "died":
        return Remedy.reinstall(
            f"Reinstall {framework_name(run)} and its CUDA libraries in matching versions, and check that "
            "LD_LIBRARY_PATH loads no other build of them."
        )
    if case.outcome == "timed-out":
        return Remedy.configure("Find out where it hung; on a busy machine, run it again when the machine is idle.")
    if case.workers and any(name in (case.error_message or "") for name in _LOST_PEER):
        return Remedy.configure(
            "Find out why one process stopped responding: it may lack memory, or a firewall or proxy blocks "
            "the loopback interface.",
            look=(f"kdoctor smoke {quoted(run.scenario.removeprefix('smoke.'))} --keep-artifacts kdoctor-artifacts",),
        )
    return Remedy.reinstall(
        f"Replace {framework_and_version(run)} or {this_keras(run)} so that their versions are compatible; "
        "the error names the conflict."
    )


@record
class Comparison:
    """Compares trainings with the same training on one device."""

    run: SmokeRun
    target: Target | Unavailable
    packages: Packages | Unavailable
    tolerance: float = TOLERANCE
    loss_tolerance: float = LOSS_TOLERANCE
    mirrored: bool = True
    """Whether every variable must be mirrored on every replica."""
    reference: str = "one device"

    def judge(self, case: SmokeCase) -> Outcome:
        """Evidence if the weights and losses are those of one device."""
        if case.outcome != "trained":
            return did_not_finish(self.run, case)
        if case.weights is None or not case.losses:
            return unknown(case, "its weights or its losses were not read")
        problem = weights_problem(case.weights, mirrored=self.mirrored)
        if problem:
            return self.wrong(case, problem)
        return self.difference(case) or evidence(case, summarize(self.run, case))

    def difference(self, case: SmokeCase) -> Finding | Unjudged | None:
        """How the weights or losses differ from one device, or why that is not known."""
        if case.weight_deviation is None:
            return unknown(case, f"its weights were not compared with {self.reference}")
        if case.weight_deviation > self.tolerance:
            return self.wrong(case, weights_differ(case.weight_deviation, self.tolerance, self.reference))
        if not case.reference_losses or len(case.reference_losses) != len(case.losses):
            return unknown(case, f"its losses were not compared with {self.reference}")
        if not losses_match(case.losses, case.reference_losses, self.loss_tolerance):
            return self.wrong(case, losses_differ(case, self.reference))
        return None

    def count_problem(self, case: SmokeCase) -> Finding | Unjudged | None:
        """What is wrong with the counted updates, steps and epochs, or with the metric."""
        for what in ("updates", "steps", "epochs"):
            due, done = case.measures.get(f"due {what}"), case.measures.get(f"done {what}")
            if due is None or done is None:
                return unknown(case, f"its {what} were not counted")
            if due != done:
                observed = f"{done:.0f} {what} were counted instead of {due:.0f}"
                return self.wrong(case, Problem(observed, f"the number of {what} is wrong"))
        metric, reference = case.measures.get("metric"), case.measures.get("metric_reference")
        if metric is None or reference is None:
            return unknown(case, "its metric was not compared with one device")
        if not math.isclose(metric, reference, rel_tol=LOSS_TOLERANCE):
            observed = f"the mean absolute error is {metric:.4g} instead of {reference:.4g}"
            return self.wrong(case, Problem(observed, "a reported metric differs from one device's", "losses"))
        return None

    def wrong(self, case: SmokeCase, problem: Problem) -> Finding:
        """A training that does not compute what one device computes."""
        remedy, rollback = self._other_keras(problem)
        explained_by = of_losses(self.run) if problem.about == "losses" else of_weights(self.run)
        on_jax = f" on JAX {self.run.jax}" if self.run.jax else ""
        return Finding(
            subject=subject(case),
            observed=f"{problem.observed} ({keras_of(self.run)}{on_jax}, {_replicas(self.run, case)})",
            expected=f"the same as {'on ' if self.reference == 'one device' else 'in '}{self.reference} with the same "
            "global batches",
            remedy=remedy,
            rollback=rollback,
            brief=problem.brief,
            explained_by=explained_by,
        )

    def _other_keras(self, problem: Problem) -> tuple[Remedy, Rollback]:
        if not has_keras(self.run, WRONG_WEIGHTS if problem.about == "weights" else WRONG_LOSSES):
            summary = (
                f"Look for patched code, a replaced optimizer or a faulty transfer between the devices: "
                f"{this_keras(self.run)} is not known to compute this incorrectly."
            )
            return Remedy.change_code(summary), NO_ROLLBACK
        wanted = FIXED_KERAS
        if isinstance(self.target, Target) and isinstance(self.packages, Packages):
            wanted = first_accepted(self.target, self.packages, FIXED_KERAS, "keras<3")
            command = install(self.target, self.packages, wanted)
            rollback = restore(self.target, self.packages, "keras")
        else:
            command = f"pip install {quoted(wanted)}"
            version = (self.run.keras or "").partition(" ")[2]
            rollback = Rollback.to(
                f"reinstall {self.run.keras}, as used in this run", f"pip install {quoted(f'keras=={version}')}"
            )
        summary = f"Install {wanted}."
        remedy = Remedy.reinstall(summary, command)
        return remedy, rollback


def weights_differ(deviation: float, tolerance: float, reference: str = "one device") -> Problem:
    """The difference of the weights from those of the reference."""
    observed = f"weights differ by up to {deviation:.2g}, above the tolerance of {tolerance:g}"
    return Problem(observed, f"weights differ from {reference}'s", "weights")


def losses_differ(case: SmokeCase, reference: str = "one device") -> Problem:
    """The losses that were reported, and those of the reference."""
    observed = f"reported losses are {format_losses(case.losses)} instead of {format_losses(case.reference_losses)}"
    return Problem(observed, f"reported losses differ from {reference}'s", "losses")


def weights_problem(weights: Weights, *, mirrored: bool = True) -> Problem | None:
    """What is wrong with the variables themselves."""
    if weights.variables == 0:
        return Problem("the model has no trainable variables", "the model has no trainable variables")
    if mirrored and weights.mirrored < weights.variables:
        variables = counted(weights.variables, "trainable variable")
        observed = f"only {weights.mirrored} of {variables} are mirrored on every replica"
        return Problem(observed, "variables are not mirrored on every replica")
    if weights.nonfinite:
        return Problem(f"NaN or infinity in {some(weights.nonfinite)}", "weights are NaN or infinite", "weights")
    if weights.replicas_agree is False:
        observed = "the replicas hold different weights after the same steps"
        return Problem(observed, "the replicas hold different weights", "weights")
    return None


def losses_match(losses: Sequence[float | None], others: Sequence[float | None], tolerance: float) -> bool:
    """Whether the losses are finite and equal within a relative tolerance."""
    return len(losses) == len(others) and all(
        one is not None and other is not None and math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance / 10)
        for one, other in zip(losses, others, strict=True)
    )


def loss_falls(case: SmokeCase) -> bool:
    """Whether all losses are finite, and the last one is lower than the first."""
    first, last = (case.losses[0], case.losses[-1]) if len(case.losses) > 1 else (None, None)
    return None not in case.losses and first is not None and last is not None and last < first


def starves(batch: int, replicas: int) -> bool:
    """Whether a batch leaves the last replica empty: it is cut into chunks of ``ceil(batch / replicas)``."""
    return (replicas - 1) * -(-batch // replicas) >= batch


def summarize(run: SmokeRun, case: SmokeCase) -> str:
    """A good training in one line."""
    deviation = (
        f"; weights within {case.weight_deviation:.2g} of one device" if case.weight_deviation is not None else ""
    )
    step = f"; step {case.step_s:.3g} s" if case.step_s is not None else ""
    return (
        f"{case.strategy or 'strategy unknown'}, {_replicas(run, case)} ({run.devices_kind}), "
        f"losses {format_losses(case.losses)}{deviation}{step}"
    )


def _replicas(run: SmokeRun, case: SmokeCase) -> str:
    """How many replicas, or on JAX devices of the mesh, it trained on."""
    what = "device" if run.jax else "replica"
    return counted(case.replicas, what) if case.replicas is not None else f"unknown number of {what}s"


def fit_unsupported(run: SmokeRun, case: SmokeCase, strategy: str, remedy: str) -> Finding:
    """``Model.fit`` does not work under a strategy."""
    observed = f"cannot fit under {strategy}: {describe_end(case)}"
    if case.outcome == "trained":
        observed = f"trains incorrectly under {strategy}: losses are {format_losses(case.losses)}"
        observed += f" instead of {format_losses(case.reference_losses)}" if case.reference_losses else ""
        observed += (
            f"; weights differ by up to {case.weight_deviation:.2g}" if case.weight_deviation is not None else ""
        )
    brief = f"fit {'trains incorrectly' if case.outcome == 'trained' else 'fails'} under {strategy}"
    observed = f"{this_keras(run)} {observed}"
    return finding(case, observed, f"Model.fit trains under {strategy}", remedy, brief=brief)


def bit_equal(
    case: SmokeCase, measures: str, *, expected: str, remedy: str, describe: Callable[[list[str], str], str]
) -> Outcome:
    """Whether all variables are bit by bit those that were saved.

    Args:
        case: a case that trained, saved and loaded.
        measures: common prefix of the measures, such as ``equal on``.
        expected: what should be equal.
        remedy: what to do if it is not.
        describe: makes the evidence of the measures' names and of the number of equal variables.
    """
    variables = case.measures.get("variables")
    equal = {name: count for name, count in case.measures.items() if name.startswith(f"{measures} ")}
    if not variables or not equal:
        return unknown(case, "nothing was compared after loading")
    wrong = [
        f"only {count or 0:.0f} of {counted(round(variables), 'variable')} are {name}"
        for name, count in equal.items()
        if count != variables
    ]
    if wrong:
        return finding(case, "; ".join(wrong), expected, remedy, brief="saved and loaded variables differ")
    places = [name.removeprefix(f"{measures} ") for name in equal]
    return evidence(case, describe(places, f"{counted(round(variables), 'variable')}, all bit-equal"))
