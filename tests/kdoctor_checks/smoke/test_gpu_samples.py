"""The checks of what GPUs did while trainings ran on them."""

from typing import Any

from helpers.facts import (
    GIB,
    MIB,
    bus_id,
    case_use,
    environment,
    event,
    gpu,
    gpu_use,
    gpus,
    idle_use,
    sampled_gpu,
    sampling,
    smoke_case,
    smoke_run,
    spread,
)
from helpers.rows import Row, fails, passes, skips, table, unknown
from kdoctor.facts import CaseUse, EventTime, FactGroup, GpuSampling, GpuUse, SmokeRun, SmokeRuns, SmokeWorker, Weights
from kdoctor.model import Severity

GPU0, GPU1 = gpu(0).subject, gpu(1).subject
NO_USE: dict[str, Any] = {"utilization_gpu_percent": spread(0.0, 0.0, 0.0)}
CPU_ONLY = GpuSampling(state="not-started", error="the trainings ran on logical CPU devices")
NOT_SAMPLED = f"unknown {GPU1}: it was not sampled."


def second(use: CaseUse, **changes: Any) -> GpuSampling:
    """Two GPUs. The second has the given use."""
    return sampling(2, sampled_gpu(0), sampled_gpu(1, cases=(use,), **changes))


def both(*uses: CaseUse) -> GpuSampling:
    return sampling(2, *(sampled_gpu(index, cases=uses) for index in range(2)))


def of_two(first: CaseUse, other: CaseUse) -> GpuSampling:
    return sampling(2, sampled_gpu(0, cases=(first,)), sampled_gpu(1, cases=(other,)))


def training(replicas: int = 2, **case: Any) -> SmokeRun:
    return smoke_run("smoke.baseline", replicas, smoke_case(replicas=replicas, **case))


def still(value: float) -> Any:
    return spread(value, value, value)


def held(memory: float, processes: float) -> GpuSampling:
    """A GPU that other processes hold, too."""
    values = {"memory_used_bytes": still(memory), "processes": still(processes)}
    return second(idle_use(**values), before=GpuUse(samples=6, **values))


def busy(mean: float, samples: int = 6) -> CaseUse:
    return case_use(utilization_gpu_percent=spread(0.0, mean, 90.0), training_samples=samples)


def of_four(facts: tuple[FactGroup, ...], *used: int, replicas: int = 1, **case: Any) -> Row:
    """The GPUs that are judged, of four."""
    found = [gpu(index).subject for index in used]
    given = (sampling(4), training(replicas, **case), gpus(4), *facts)
    return passes(*given, of=found) if found else unknown(*given, evidence=0)


NEVER = case_use(**NO_USE)
ON_ONE = Weights(variables=4, mirrored=0, nonfinite=(), replicas_agree=None)
UNEQUAL = gpus(4, *(gpu(index, name=f"model {index}") for index in range(4)))
UUIDS = [gpu(index).uuid or "" for index in range(4)]
LITTLE = case_use(utilization_gpu_percent=spread(0.0, 0.5, 2.0))


def only(**changes: Any) -> GpuSampling:
    return sampling(2, sampled_gpu(0), sampled_gpu(1, **changes))


TWO_CASES = smoke_run("smoke.baseline", 2, smoke_case(replicas=2), smoke_case("fit", 2))

test_gpus_worked = table(
    "smoke.gpus-worked",
    Severity.WARNING,
    fails(second(NEVER), f"fail {GPU1}: memory in use up by 596 MiB, 1 compute process"),
    # The strategy has replicas on both GPUs, but the model's variables are on one.
    passes(second(NEVER), training(weights=ON_ONE)),
    unknown(second(idle_use(training_samples=2)), "2 samples"),
    fails(second(idle_use(training_samples=3))),
    unknown(second(idle_use(memory_used_bytes=None)), "memory"),
    unknown(second(case_use(**NO_USE, training_samples=1)), "1 sample "),
    passes(of_two(LITTLE, NEVER), ": memory in use up by 596 MiB, 1 compute process (12 samples", of=2),
    unknown(held(30.0 * GIB, 1.0), "other processes"),
    fails(held(2.0 * GIB, 0.0)),
    unknown(held(2.1 * GIB, 0.0)),
    unknown(held(2.0 * GIB, 1.0)),
    # The probe of the GPUs replaces missing samples from before.
    passes(second(case_use(), before=GpuUse())),
    fails(second(idle_use(), before=GpuUse())),
    unknown(second(idle_use(), before=GpuUse()), gpus(2, gpu(0), gpu(1, memory_used_bytes=None, processes=None))),
    passes(
        second(idle_use(utilization_gpu_percent=spread(0.0, 0.1, 1.0)), before=GpuUse()),
        gpus(2, gpu(0), gpu(1, utilization_gpu_percent=None)),
        f"pass {GPU1}: utilization up to 1 % (",
    ),
    *(
        unknown(only(**changes), text, evidence=1)
        for changes, text in (
            ({"during": GpuUse(), "cases": (), "errors": {"handle": "GPU_IS_LOST"}}, "GPU_IS_LOST"),
            ({"during": GpuUse(), "cases": (), "hangs": "power_draw_w"}, "power_draw_w"),
            ({"during": GpuUse(), "cases": ()}, "first sample"),
            ({"cases": ()}, "0 samples"),
        )
    ),
    skips(CPU_ONLY, reason="the trainings ran on logical CPU devices"),
    unknown(GpuSampling(state="library-absent", error="NVML_ERROR_LIBRARY_NOT_FOUND: libnvidia-ml.so.1")),
    unknown(GpuSampling(state="failed", error="the sampling process died of SIGKILL")),
    unknown(GpuSampling(state="ready")),
    unknown(SmokeRuns()),
    unknown(training(outcome="raised")),
    unknown(smoke_run("smoke.baseline", 2, smoke_case(replicas=2), gpus_seen=None)),
    unknown(smoke_run("smoke.baseline", 2, smoke_case(replicas=2), gpus_seen=3)),
    unknown(training(kind="CPU")),
    unknown(training(workers=(SmokeWorker(name="worker 0", outcome="trained"),))),  # each process numbers its own GPUs
    passes(second(case_use()), training(devices=("gpu:0", "gpu:1"))),  # as Keras on JAX names them
    of_four((environment(CUDA_VISIBLE_DEVICES="2"),), 2),
    of_four((environment(CUDA_VISIBLE_DEVICES="3,1"),), 1, 3, replicas=2),
    of_four((environment(CUDA_VISIBLE_DEVICES=UUIDS[3]),), 3),
    # Unequal GPUs need the order of the bus, UUIDs, or addresses from CUDA. If all are used, no order matters.
    of_four((UNEQUAL, environment(CUDA_VISIBLE_DEVICES="2"))),
    of_four((UNEQUAL, environment(CUDA_VISIBLE_DEVICES="2", CUDA_DEVICE_ORDER="PCI_BUS_ID")), 2),
    of_four((UNEQUAL, environment(CUDA_VISIBLE_DEVICES=UUIDS[2])), 2),
    of_four((UNEQUAL,), 0, 1, 2, 3, replicas=4),
    of_four((UNEQUAL,), 3, bus_ids=(bus_id(3),)),
    of_four((UNEQUAL,), bus_ids=(bus_id(3), None), replicas=2),
    unknown(environment(CUDA_VISIBLE_DEVICES="MIG-1234"), training(1), "MIG"),
    # The GPU was busy, but in another case.
    unknown(only(cases=(case_use("own-model", "smoke.own-model"),), during=gpu_use()), ": utilization up to 90 %"),
    passes(both(case_use(), idle_use(case="fit")), TWO_CASES, ": utilization up to 90 %", "24 samples in 2 trainings"),
    unknown(sampling(1), NOT_SAMPLED),
    # The memory of a context shows work if no GPU has utilization.
    passes(both(idle_use(memory_used_bytes=spread(4.0 * MIB, 4.0 * MIB, 68.0 * MIB)))),
    fails(of_two(busy(10.0, 3), NEVER), unsaid="too little work"),
    passes(of_two(busy(10.0, 2), NEVER), "; too little work to show in the utilization)."),
    fails(
        sampling(
            4,
            *(sampled_gpu(index, cases=(busy(mean),)) for index, mean in enumerate((20.0, 60.0, 30.0))),
            sampled_gpu(3, cases=(idle_use(),)),
        ),
        training(4),
        gpus(4),
        ", while another GPU was busy for 60 % of the time.",
    ),
    fails(
        sampling(1, sampled_gpu(0, cases=(idle_use(),))),
        training(1),
        gpus(1),
        said={GPU0: "memory in use, processes and utilization never rose in 12 samples in 1 training"},
    ),
    given=(sampling(2), smoke_run(replicas=2), gpus(2), environment()),
)


def slowed(*events: EventTime, use: Any = None, **changes: Any) -> GpuSampling:
    """Two GPUs. The second has the given clock event reasons."""
    return only(**{"during": gpu_use(events=events, **(use or {})), **changes})


def trainings(*names: str) -> GpuSampling:
    """Trainings of which all but one were slowed down."""
    found = tuple(case_use(name, events=(event(0x01), event(0x40))) for name in names)
    return slowed(event(0x40), cases=(case_use("cool"), *found))


COOL = smoke_run("smoke.baseline", 2, smoke_case("cool", 2))
HOT = slowed(event(0x40))
SILENT = {"during": gpu_use(events=()), "errors": {"clock_event_reasons": "NVML_ERROR_NOT_SUPPORTED"}}
STATE = "no slowdown in 12 samples, at most 45 C, 310 of 700 W, SM clock 345 to 1980 of 1980 MHz"
UNKNOWN_USE = "which of them trained is not known: "
SLOWED = f"fail {GPU1}: HW Thermal Slowdown 2.0 s"

test_gpus_unslowed = table(
    "smoke.gpus-unslowed",
    Severity.WARNING,
    passes(said={GPU0: STATE, GPU1: STATE}),
    *(
        fails(slowed(event(bit, 4.5, 9, in_a_row)))
        for bit, in_a_row in ((0x40, 1), (0x80, 1), (0x08, 2), (0x20, 2))  # heat, the power brake, and what lasts
    ),
    *(
        passes(slowed(event(bit, 4.5, 9, in_a_row)))
        for bit, in_a_row in ((0x08, 1), (0x20, 1), (0x04, 9), (0x01, 9), (0x02, 9), (0x100, 9))
    ),
    fails(
        slowed(
            event(0x08, 3.5),
            event(0x40, 3.0),
            use={"temperature_c": spread(41.0, 70.0, 88.0), "clock_sm_mhz": spread(345.0, 900.0, 1980.0)},
            cases=(case_use(), case_use("fit", events=(event(0x40),))),
            temperature_slowdown_c=87,
        ),
        f"fail {GPU1}: HW Slowdown 3.5 s, HW Thermal Slowdown 3.0 s during smoke.baseline/fit, ",
        *("88 C", "87", "310 of 700 W", "345 to 1980 of 1980 MHz"),
        f"; nvidia-smi -i {bus_id(1)}",
        of=[GPU1],
    ),
    fails(trainings("a", "b", "c"), COOL, f"{SLOWED} during smoke.baseline/a, smoke.baseline/b and 1 more, at most"),
    passes(slowed(event(0x1000, 1.25)), "; reason 0x1000 1.2 s."),
    passes(
        slowed(event(0x1), enforced_power_limit_w=None, clock_sm_max_mhz=None, temperature_slowdown_c=87),
        "no slowdown in 12 samples, at most 45 C (slowdown at 87 C), 310 W, SM clock 345 to 1980 MHz.",
    ),
    *(
        unknown(only(**changes), text, evidence=1)
        for changes, text in (
            ({"during": GpuUse(), "hangs": "temperature_c"}, "temperature_c"),
            ({"hangs": "temperature_c"}, "12 samples"),
            ({"during": GpuUse(), "errors": {"handle": "GPU_IS_LOST"}}, "GPU_IS_LOST"),
            ({"during": gpu_use(events=()), "errors": {"clock_event_reasons": "NVML_UNKNOWN"}}, "NVML_UNKNOWN"),
        )
    ),
    skips(sampling(2, *(sampled_gpu(index, **SILENT) for index in range(2)))),
    skips(GpuSampling(state="not-started", error="no training was run")),
    unknown(GpuSampling(state="driver-not-loaded", error="no driver")),
    unknown(GpuSampling(state="failed", error="the sampling process died of SIGSEGV")),
    unknown(GpuSampling(state="ready")),
    passes(HOT, training(1), environment(CUDA_VISIBLE_DEVICES="0")),  # unused GPUs are not judged
    fails(HOT, environment(CUDA_VISIBLE_DEVICES="MIG-1234")),
    unknown(SmokeRuns(), f"{UNKNOWN_USE}no training on GPUs finished.", evidence=0),
    unknown(environment(CUDA_VISIBLE_DEVICES="MIG-1234"), evidence=0),
    unknown(
        smoke_run("smoke.baseline", 2, smoke_case(replicas=2), gpus_seen=3),
        f"{UNKNOWN_USE}TensorFlow lists 3 GPUs, but 2 are visible.",
    ),
    unknown(sampling(1), NOT_SAMPLED, evidence=1),
    given=(sampling(2), smoke_run(replicas=2), gpus(2), environment()),
)
