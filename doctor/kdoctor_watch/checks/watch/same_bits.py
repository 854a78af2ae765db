import datetime as dt
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import BitDifference
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor.text.lists import counted, some
from kdoctor_watch.facts import Watched, WatchedBits

_ROLLBACK = Rollback.irreversible("training steps cannot be undone: continue from a checkpoint")
_LOOK = ("nvidia-smi -q -d ECC,ROW_REMAPPER", "sudo dmesg | grep -iE 'NVRM|Xid'", "kdoctor smoke same-bits")


@check("watch.same-bits", severity=Severity.ERROR)
def same_bits(watched: Watched) -> Iterator[Outcome]:
    """The devices compute the same bits as before the first step, and as each other.

    Why: a GPU that begins to compute wrong numbers gives no error, and the sum of the gradients carries them to all
    replicas, which stay equal. With ``kdoctor.Watch(canary="10min")``, fixed programs run on every device between two
    steps. Their outputs must equal those of the first round, and those of the other devices of the model. A fault that
    comes and goes between two rounds is not seen.
    Remedy: continue from a checkpoint that was saved before the last clean round, without the device.
    Source: https://arxiv.org/abs/2502.12340
    """
    bits = watched.bits
    if bits.every_s is None:
        yield NotApplicable(reason='there is no canary: kdoctor.Watch(canary="10min")')
        return
    for place in sorted({one.device for one in bits.differences}):
        yield _finding(watched, bits, place)
    if bits.unavailable is not None:
        yield Unjudged(subject="devices", reason=f"the programs were not run to the end: {bits.unavailable}")
    elif bits.rounds < 2:  # noqa: PLR2004 - the first one and one to compare with it
        yield Unjudged(subject="devices", reason="no round was compared with the first one")
    elif not bits.differences:
        observed = (
            f"{counted(len(bits.programs), 'program')} gave the same bits on {counted(bits.devices, 'device')} in "
            f"{counted(bits.rounds, 'round')}, the last one after step {bits.clean_step}; {bits.seconds:.2g} s in all"
        )
        yield Evidence(subject="devices", observed=observed, brief=f"{counted(bits.rounds, 'round')} the same")


def _finding(watched: Watched, bits: WatchedBits, place: int) -> Finding:
    own = [_describe(watched, one) for one in bits.differences if one.device == place]
    clean = bits.clean_step
    since = "before the first step" if clean == -1 else "never" if clean is None else f"after step {clean}"
    return Finding(
        subject=_name(watched, place),
        observed=f"{some(own, 3)}, found after step {bits.found_step} (all devices were equal {since})",
        brief="computes other bits",
        expected="the bits of the first round and of equal devices",
        remedy=Remedy.inspect(f"Stop the job, {_go_on(bits)}, and take the device out of service.", *_LOOK),
        rollback=_ROLLBACK,
    )


def _go_on(bits: WatchedBits) -> str:
    if bits.clean_step is None or bits.clean_step < 0 or bits.clean_at is None:
        return "go on from a checkpoint of before the training began"
    at = dt.datetime.fromtimestamp(bits.clean_at, dt.timezone.utc)
    round_ = f"the last clean round (after step {bits.clean_step}, {at:%Y-%m-%d %H:%M:%S} UTC)"
    if bits.kept is not None:
        return f"go on from {bits.kept}, the newest file from before {round_}"
    if bits.saves is not None:
        return f"train again from before this training, because {bits.saves} has no file from before {round_}"
    return f"go on from a checkpoint that was saved before {round_}"


def _name(watched: Watched, place: int) -> str:
    return watched.devices[place].rpartition("device:")[2] if place < len(watched.devices) else f"device {place}"


def _describe(watched: Watched, one: BitDifference) -> str:
    than = "as before" if one.other is None else f"as on {_name(watched, one.other)}"
    return f"{one.program}: {one.differing} of {counted(one.elements, 'element')} not {than}"
