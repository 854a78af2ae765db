"""Judges whether devices compute the same bits, for the checks of TensorFlow and of JAX."""

from collections.abc import Iterator, Sequence

from kdoctor.facts import BitDifference, Gpus, SmokeCase, SmokeRun, Unavailable
from kdoctor.model import Finding, Outcome, Remedy
from kdoctor.text.lists import counted, some
from kdoctor_checks._gpus import choose_gpus
from kdoctor_checks.smoke._judging import NO_ROLLBACK, evidence, judge_cases, unknown
from kdoctor_checks.smoke._replica_gpus import ReplicaGpus, replica_gpus

EXPLAINED_BY = (
    *("gpu.responding", "gpu.kernel-log", "gpu.ecc-errors", "gpu.sram-errors", "gpu.row-remapping"),
    *("gpu.unrepairable-memory", "gpu.recovery-action", "gpu.repair-pending"),
)
"""What says more about a GPU that computes wrong numbers."""
_LOOK = ("nvidia-smi -q -d ECC,ROW_REMAPPER,TEMPERATURE,POWER", "dcgmi diag -r 3", "sudo dmesg | grep -iE 'NVRM|Xid'")
_LEAST_ROUNDS = 2
"""The first round and one to compare with it."""


def judge_same_bits(run: SmokeRun, gpus: Gpus | Unavailable, hot_s: float) -> Iterator[Outcome]:
    """One outcome for each device: what it computed differently, or with how much it was compared."""

    def judge(case: SmokeCase) -> Iterator[Outcome]:
        rounds, seconds = case.measures.get("rounds"), case.measures.get("hot_s")
        if not case.devices or not case.programs:
            yield unknown(case, "no program was run")
        elif rounds is None or rounds < _LEAST_ROUNDS or seconds is None:
            yield unknown(case, "the outputs were not compared")
        elif run.devices_kind == "gpu" and seconds < hot_s:
            yield unknown(
                case, f"the devices were compared for {seconds:.0f} s, and the checklist asks for {hot_s:g} s"
            )
        else:
            found = replica_gpus(case, gpus)
            yield evidence(counted(len(case.programs), "program"), ", ".join(case.programs))
            for place in range(len(case.devices)):
                yield _judge(case, found, place, round(rounds), seconds)

    yield from judge_cases(run, ("all-devices",), judge, replicated=False)


def _judge(case: SmokeCase, found: ReplicaGpus, place: int, rounds: int, seconds: float) -> Outcome:
    name = found.names[place]
    own = [one for one in case.bit_differences if one.device == place]
    if own:
        return _finding(own, found, place, rounds)
    equal = case.measures.get(f"equal {place}")
    if equal is None:
        return unknown(name, "how many equal devices there are was not read")
    others = (
        f"as on {counted(round(equal), 'equal device')}" if equal else "no other device of its model to compare with"
    )
    return evidence(name, f"the same bits in {counted(rounds, 'round')} in {seconds:.3g} s; {others}")


def _finding(own: Sequence[BitDifference], found: ReplicaGpus, place: int, rounds: int) -> Finding:
    decided = any(one.decided for one in own)
    others = [gpu for number, gpu in enumerate(found.gpus) if number != place and gpu is not None]
    use = choose_gpus(others) if decided and others and None not in found.gpus else ()
    summary = (
        "Do not train on this device: take it out of service and have it examined. Results of jobs that used it may be "
        "wrong."
        if decided
        else "One of these devices computes wrong numbers, and two cannot show which. Train on neither, and compare "
        "them with a third one of the model."
    )
    return Finding(
        subject=found.names[place],
        observed="; ".join(_describe(one, found, rounds) for one in own[:3])
        + (f"; and in {len(own) - 3} more" if len(own) > 3 else ""),  # noqa: PLR2004
        brief=f"computes other bits in {some(sorted({one.program for one in own}), 2)}",
        expected="the same bits as equal devices, each time",
        remedy=Remedy.configure(summary, *use, look=_LOOK),
        rollback=NO_ROLLBACK,
        explained_by=EXPLAINED_BY,
    )


def _describe(one: BitDifference, found: ReplicaGpus, rounds: int) -> str:
    wrong = f"{one.differing} of {counted(one.elements, 'element')}"
    first = "" if one.first is None else f", first at {one.first}"
    often = f"in {one.rounds} of {counted(rounds, 'round')}, first in round {one.found_in}"
    if one.other is None:
        again = {True: "; it repeats", False: "; it does not repeat", None: ""}[one.repeats]
        return f"{one.program}: {wrong} not as in its first round ({often}{first}){again}"
    return f"{one.program}: {wrong} not as on {found.names[one.other]}{first}"
