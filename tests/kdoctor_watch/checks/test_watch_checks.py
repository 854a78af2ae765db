"""Each check of a watched training: a row for each state of the training."""

from dataclasses import replace
from typing import Any

from helpers.facts import bus_id
from helpers.kdoctor_watch.facts import BUSY, watched
from helpers.rows import fails, passes, skips, table, unknown
from kdoctor.catalog.load import load_catalog
from kdoctor.facts import BitDifference, EventTime, GpuSampling, GpuSeries, GpuUse, KernelLog, SampledGpu
from kdoctor.facts.gpus import EVENT_HW_THERMAL_SLOWDOWN
from kdoctor.model import Severity, Status
from kdoctor.probes.kernel_log import parse_log
from kdoctor.testing import compute_check
from kdoctor_watch.facts import (
    NotFinite,
    ReplicaDifference,
    Stall,
    Watched,
    WatchedBits,
    WatchedInput,
    WatchedMemory,
    WatchedReplicas,
    WatchedSteps,
    WatchedValues,
)

MIB, GIB = 2**20, 2**30
ON_CPU = watched(devices=("/device:CPU:0",))
DIFFERENCE = ReplicaDifference(
    variable="dense/kernel", replica=1, device="/device:GPU:1", other=0, step=300, equal_at=200, values=3, of=64,
    largest=0.25,
)  # fmt: skip
ON_REPLICA_1 = "dense/kernel on replica 1 (GPU:1)"


def test_training_of_which_nothing_was_stated_passes_nothing() -> None:
    nothing = Watched(
        seconds=100,
        steps=WatchedSteps(steps=0),
        values=WatchedValues(),
        replicas=WatchedReplicas(replicas=2),
        input=WatchedInput(),
        bits=WatchedBits(every_s=60),
    )
    checks = [check for check in load_catalog().checks.values() if check.family == "watch"]
    results = {check.id: compute_check(check, nothing).status for check in checks}
    assert len(results) > 8
    assert Status.PASS not in results.values(), results


def replicas(**changes: Any) -> Watched:
    return watched(replicas=replace(watched().replicas, **changes))


def differs(**changes: Any) -> Watched:
    return replicas(differences=(replace(DIFFERENCE, **changes),))


test_replicas_equal = table(
    "watch.replicas-equal",
    Severity.ERROR,
    passes(
        replicas(replicas=2, variables=20, checks=1, last_step=99),
        said={"replicas": "20 variables on 2 replicas equal in 1 comparison, the last one after step 99"},
        briefs=["2 replicas equal"],
    ),
    fails(differs(), "3 of 64 values differ from replica 0", "by at most 0.25", "step 300", of=[ON_REPLICA_1]),
    fails(differs(), "(equal after step 200)"),
    fails(differs(values=1, of=1), "1 of 1 value differs"),
    fails(differs(values=1, largest=None), "1 of 64 values differs from replica 0, found"),
    fails(differs(values=None), "a value differ"),
    fails(differs(of=0), "a value differ"),
    fails(differs(equal_at=None), "never compared before"),
    unknown(replicas(unavailable="RuntimeError: no")),
    unknown(replicas(checks=0)),
    unknown(replicas(variables=0)),
    skips(replicas(replicas=1, variables=0)),
)


BITS = BitDifference(
    program="attention", device=1, other=None, elements=256, differing=2, first=3, rounds=1, found_in=5, repeats=True
)


def bits(*differences: BitDifference, **changes: Any) -> Watched:
    return watched(bits=replace(watched().bits, differences=differences, **changes))


CLEAN: dict[str, Any] = {"clean_step": 99, "clean_at": 1795955465.0, "found_step": 130}
test_same_bits = table(
    "watch.same-bits",
    Severity.ERROR,
    passes(bits(clean_step=99, rounds=4), "2 programs gave the same bits on 8 devices in 4 rounds", "step 99"),
    fails(bits(BITS, clean_step=99, found_step=130), "2 of 256", "after step 130", "after step 99", of=["GPU:1"]),
    fails(bits(BITS, **CLEAN), "a checkpoint that was saved before", "2026-11-29 12:31:05 UTC"),
    fails(bits(BITS, **CLEAN, saves="/data", kept="/data/7.keras"), "go on from /data/7.keras"),
    fails(bits(BITS, **CLEAN, saves="/data"), "/data has no file from before"),
    fails(bits(BITS, clean_step=-1, found_step=130), "before the first step"),
    fails(bits(replace(BITS, other=0), clean_step=None, found_step=-1), "not as on GPU:0", "never"),
    fails(bits(BITS, replace(BITS, device=0, other=1, decided=False)), "attention", of=["GPU:0", "GPU:1"]),
    unknown(bits(unavailable="ResourceExhaustedError: no memory")),
    unknown(bits(rounds=1)),
    skips(bits(every_s=None)),
)


def bad(kind: Any, name: str, step: int, finite_at: int | None = None, replica: int | None = None) -> NotFinite:
    return NotFinite(kind=kind, name=name, step=step, finite_at=finite_at, replica=replica)


def values(**found: Any) -> Watched:
    return watched(values=WatchedValues(**found))


test_finite = table(
    "watch.finite",
    Severity.ERROR,
    passes(values(logs=("loss",), steps=1), said={"values": "finite: loss in 1 step"}),
    passes(values(steps=0, variables=1), said={"values": "finite: 1 variable"}),
    passes(values(steps=5, gradients=5), said={"values": "finite: gradients in 5 steps"}),
    passes(
        values(logs=("loss",), steps=5, gradients=4, variables=2),
        said={"values": "finite: loss in 5 steps, gradients in 4 steps, 2 variables"},
    ),
    fails(
        values(
            steps=1000,
            not_finite=(
                bad("log", "loss", 17, 16),
                bad("gradient", "dense/kernel", 17, 16),
                bad("variable", "dense/kernel", 100, 0, 1),
                bad("variable", "dense/bias", 100, 0, 1),
                bad("variable", "other", 200, None, 0),
            ),
        ),
        of=["loss", "gradient of dense/kernel", "variables after step 100", "variable other"],
    ),
    # Variables of one look are described by the first.
    fails(
        values(
            steps=200, not_finite=(bad("variable", "a", 100, 50, 0), bad("variable", "b", 100), bad("log", "loss", 101))
        ),
        said={
            "loss": "NaN or infinite after step 101 (never finite before)",
            "variables after step 100": "2 variables: a, b: NaN or infinite on replica 0 after step 100 "
            "(last finite after step 50)",
        },
    ),
    unknown(values()),
)

TIMED = WatchedSteps(steps=9, timed=9, baseline_s=10.0, recent_s=20.0, slowest_s=40.0, slowest_at=4)


def stalled(after: float | None = 120.0, **changes: Any) -> Watched:
    stall = Stall(**{"step": 7, "seconds": 130.0, "ended": False, "where": "train.py:3", **changes})
    return watched(steps=replace(TIMED, stalls=(stall,), stall_after_s=after))


test_stall = table(
    "watch.stall",
    Severity.ERROR,
    passes(watched(steps=WatchedSteps(steps=2))),
    fails(stalled(), said={"step 7": "took 130.0 s and has not ended; it is at train.py:3"}),
    fails(stalled(ended=True), said={"step 7": "took 130.0 s"}, expected="less than 120 s"),
    fails(stalled(where=""), said={"step 7": "took 130.0 s and has not ended"}),
    fails(stalled(after=None), expected="steps of usual length"),
    unknown(watched(steps=WatchedSteps(steps=1))),
)


def slowest(seconds: float | None, at: int | None = None, **changes: Any) -> Watched:
    values = {"baseline_s": 0.1, "recent_s": 0.12, "slowest_s": seconds, "slowest_at": at, **changes}
    return watched(steps=replace(watched().steps, **values))


test_step_time = table(
    "watch.step-time",
    Severity.WARNING,
    passes(slowest(0.15), said={"steps": "120 ms per step, 100 ms at the beginning"}, briefs=["120 ms per step"]),
    passes(slowest(0.1875, baseline_s=0.125)),  # exact in binary, so exactly 1.5 times
    fails(slowest(0.15), {"factor": 1.2}),
    fails(slowest(0.151)),
    fails(slowest(0.2, 400), "steps: 200 ms per step around step 400, 100 ms at the beginning (2.00 times)"),
    fails(watched(steps=TIMED), "steps: 4e+04 ms per step around step 4, 1e+04 ms at the beginning (4.00 times)"),
    unknown(slowest(None)),
)


def seen(looks: int = 0, **changes: Any) -> Watched:
    return watched(input=WatchedInput(looks=looks, **changes))


NOT_READY = "no batch was ready before 5 of 100 steps (5%)"
test_input = table(
    "watch.input",
    Severity.WARNING,
    passes(seen(100, empty=20)),
    fails(seen(100, empty=21)),
    passes(seen(10)),
    unknown(seen(9)),
    unknown(seen(unavailable="not passed")),
    passes(seen(waited_s=1.0, seconds=10.0)),
    fails(seen(waited_s=5.0, seconds=10.0)),
    passes(
        seen(100, empty=5, waited_s=2.0, seconds=10.0), said={"input": "2 of 10 s were spent waiting for batches (20%)"}
    ),
    passes(
        seen(100, empty=5, waited_s=0.0, seconds=10.0), said={"input": "0 of 10 s were spent waiting for batches (0%)"}
    ),
    passes(seen(100, empty=5, waited_s=2.0, seconds=0.0), said={"input": NOT_READY}),
    passes(seen(100, empty=5, waited_s=None, seconds=10.0), said={"input": NOT_READY}),
)


def rising(first: int, last: int, number: int = 8) -> tuple[int, ...]:
    """Uses of memory that rise in equal steps from the middle on: the second half begins after ``number // 2``."""
    half = number // 2
    return (first,) * (number - half - 1) + tuple(first + (last - first) * place // half for place in range(half + 1))


def used(*lows: int) -> Watched:
    return watched(memory=(WatchedMemory(name="GPU:0", every_s=60, lows=lows),))


test_memory = table(
    "watch.memory",
    Severity.WARNING,
    passes(used(*[GIB] * 8, *[2 * GIB] * 8)),  # grew once
    passes(used(*(GIB + place for place in range(16)))),  # by bytes
    fails(used(*rising(1000 * MIB, 1256 * MIB))),  # 256 MiB, which is more than 10 % of 1000 MiB
    passes(used(*rising(1000 * MIB, 1256 * MIB - 4))),
    fails(used(*rising(4000 * MIB, 4400 * MIB))),  # 10 %
    passes(used(*rising(4000 * MIB, 4400 * MIB - 4))),
    passes(used(*rising(1000 * MIB, 2000 * MIB)[:-1], 1750 * MIB)),  # it did not rise in the last period
    fails(used(1000 * MIB, 1250 * MIB, 1000 * MIB, *rising(1000 * MIB, 2000 * MIB)[3:])),  # the first half
    fails(
        used(*rising(1024 * MIB, 2048 * MIB)),
        "1024 MiB in use after half",
        "2048 MiB at its end",
        "each of 4 periods of 60 s",
        of=["GPU:0"],
    ),
    unknown(used(*[MIB] * 7), "less than 480 s", of=["GPU:0"]),
    unknown(watched(memory=())),
)


def sampling(**changes: Any) -> GpuSampling:
    """Two busy GPUs."""
    use = GpuUse(samples=100)
    gpus = tuple(
        SampledGpu(index=index, name="NVIDIA H100", bus_id=bus_id(index), during=use, series=BUSY, longest_gap_s=2.0)
        for index in range(2)
    )
    return replace(GpuSampling(state="ready", interval_s=2.0, seconds=200, gpus=gpus), **changes)


FIRST = sampling().gpus[0]


def second(*points: float | None, first: SampledGpu = FIRST) -> GpuSampling:
    """The second GPU was used this much."""
    series = GpuSeries(every_s=2.0, utilization_gpu_percent=points)
    return sampling(gpus=(first, replace(sampling().gpus[1], series=series)))


NOT_SAMPLED = (
    unknown(sampling(state="library-absent", error="no"), "NVML: no"),
    unknown(sampling(state="failed"), "NVML: failed"),
    unknown(watched(bus_ids=()), sampling()),
    unknown(watched(bus_ids=(bus_id(0),)), sampling()),
    unknown(sampling(gpus=())),
    unknown(sampling(gpus=(FIRST,)), "1 GPU was sampled of 2"),
    skips(ON_CPU, sampling(), reason="the job trains on the CPU"),
)
GPU_1 = "GPU 1 (0000:20:00.0)"
test_gpus_busy = table(
    "watch.gpus-busy",
    Severity.WARNING,
    *NOT_SAMPLED,
    passes(sampling()),
    passes(watched(1), second(*[0.0] * 40)),  # the GPU of another job
    # The newest quarter of the samples counts, and at least five.
    passes(second(*[10.0] * 5), "10 % in the newest 10 s"),
    fails(second(*[9.0] * 5), "9 % in the newest 10 s", of=[GPU_1]),
    fails(second(*[100.0] * 30, *[0.0] * 10), "0 % in the newest 20 s"),
    passes(second(*[0.0] * 30, *[100.0] * 10), "100 % in the newest 20 s"),
    passes(second(*[0.0] * 3, *[100.0] * 5), "100 % in the newest 10 s"),
    unknown(second(*[50.0] * 4), "read 4 times; 5 are needed"),
    unknown(second(None, *[50.0] * 4), "read 4 times; 5 are needed"),
    given=(watched(),),
)

HOT = EventTime(bit=EVENT_HW_THERMAL_SLOWDOWN, seconds=20.0, samples=10, in_a_row=10)
test_gpus_unslowed = table(
    "watch.gpus-unslowed",
    Severity.WARNING,
    *NOT_SAMPLED,
    passes(sampling()),
    fails(second(95.0, first=replace(FIRST, during=GpuUse(samples=100, events=(HOT,)))), of=["GPU 0 (0000:10:00.0)"]),
    given=(watched(),),
)


def log(line: str) -> KernelLog:
    return parse_log([line], source="/dev/kmsg", complete=False)


XID = log("NVRM: Xid (PCI:0000:10:00): 79, pid=1, name=python, GPU has fallen off the bus.")
test_kernel_log = table(
    "watch.kernel-log",
    Severity.WARNING,
    passes(watched(), log("usb 1-1: new device")),
    passes(watched(), log("python3[7]: segfault at 0 ip 00007f sp 00007f error 4 in libnccl.so.2[7f0+1000]")),
    fails(watched(), XID, "79", of=["GPU at 0000:10:00.0"]),
    unknown(watched(), {KernelLog: "no permission"}),
    skips(watched(devices=()), XID),
)
