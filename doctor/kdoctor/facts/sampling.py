"""The activity of the GPUs during the smoke trainings, sampled through NVML about twice a second.

Only summaries and a short series for plots are kept, whose size does not grow with the length of the run.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, ClassVar, Literal

from kdoctor.facts.base import FactGroup, Facts
from kdoctor.facts.bounds import ABOVE_ZERO, PERCENT, POSITIVE, SHARED, SIGNED, AtMost, Identity, Reason, Within, marked
from kdoctor.facts.gpus import Gpus, NvmlState
from kdoctor.records import record

SamplingState = NvmlState | Literal["not-started"]
"""``ready``: every GPU was sampled; ``not-started``: no training ran on GPUs; else why NVML could not be used."""


@record
class Spread:
    """A reading over a period."""

    low: float
    mean: float
    """Mean of the samples, which have equal distances."""
    high: float


@record
class EventTime:
    """One of the clocks' event reasons (``facts.gpus.EVENT_...``), and how long it was active."""

    bit: int
    seconds: float
    """Each sample counts for the time since the previous one."""
    samples: int
    in_a_row: int
    """The largest number of consecutive samples; 1 for a reason that is set only while the P-state changes."""


@record
class GpuUse:
    """One GPU's readings over a period. A reading that could not be taken is None."""

    samples: int = 0
    utilization_gpu_percent: Annotated[Spread | None, PERCENT] = None
    """Percentage of time in which a kernel ran; the driver averages over up to one second before the sample."""
    utilization_memory_percent: Annotated[Spread | None, PERCENT] = None
    memory_used_bytes: Spread | None = None
    temperature_c: Spread | None = None
    temperature_margin_c: Annotated[Spread | None, SIGNED] = None
    """T.Limit: degrees left until the GPU throttles."""
    power_draw_w: Spread | None = None
    clock_sm_mhz: Spread | None = None
    performance_state: Spread | None = None
    """P-state: 0 is the fastest."""
    processes: Spread | None = None
    """Number of compute processes."""
    pcie_sent_bytes_s: Spread | None = None
    """Bytes per second sent over PCIe, from the counter's growth between two samples."""
    pcie_received_bytes_s: Spread | None = None
    events: tuple[EventTime, ...] = ()


@record
class CaseUse:
    """One GPU's readings while one case ran. Cases run one at a time on GPUs."""

    scenario: str
    case: str
    samples: int
    training_samples: Annotated[int, AtMost("samples")]
    """Samples taken during its training, when each replica's variables are on its device."""
    utilization_gpu_percent: Annotated[Spread | None, PERCENT] = None
    """Without samples of the case's first second, in which the driver's average includes earlier activity."""
    memory_used_bytes: Spread | None = None
    processes: Spread | None = None
    events: tuple[EventTime, ...] = ()


@record
class GpuSeries:
    """A few readings over the run at equal distances, each the mean of its samples, or None without samples."""

    every_s: float
    """Distance of the points in seconds; the first one begins with the sampling."""
    utilization_gpu_percent: tuple[float | None, ...] = ()
    memory_used_bytes: tuple[float | None, ...] = ()
    temperature_c: tuple[float | None, ...] = ()
    power_draw_w: tuple[float | None, ...] = ()
    clock_sm_mhz: tuple[float | None, ...] = ()


@record
class SampledGpu:
    """One GPU over the run. A field that could not be read is None, and its NVML error is in ``errors``."""

    index: Annotated[int, Identity()]
    """NVML's index, also used by nvidia-smi."""
    name: str | None = None
    uuid: Annotated[str | None, Identity()] = None
    bus_id: Annotated[str | None, Identity()] = None
    """PCI address in sysfs form."""
    enforced_power_limit_w: Annotated[float | None, POSITIVE] = None
    clock_sm_max_mhz: Annotated[int | None, POSITIVE] = None
    temperature_slowdown_c: Annotated[int | None, Within(ABOVE_ZERO, 1000)] = None
    """Temperature at which it slows down; older families only."""
    temperature_slowdown_margin_c: Annotated[int | None, SIGNED] = None
    """Margin at which it slows down: zero or negative; newer families."""
    before: GpuUse = field(default_factory=GpuUse)
    """Before the first case began."""
    during: GpuUse = field(default_factory=GpuUse)
    """From the beginning of the first case on."""
    cases: tuple[CaseUse, ...] = ()
    """In the order in which they ran; empty if several ran at once, because their samples cannot be separated."""
    series: GpuSeries | None = None
    longest_gap_s: float | None = None
    """The longest time without a sample, including the time up to the end."""
    hangs: Reason = None
    """The field whose call had not returned when the run ended, if any."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Field name to the name of the last NVML error of its call."""

    @property
    def subject(self) -> str:
        """The GPU's name in reports: index and bus id."""
        return f"GPU {self.index} ({self.bus_id})" if self.bus_id else f"GPU {self.index}"


@record
class GpuSampling(FactGroup):
    """Every GPU of the machine during the smoke trainings."""

    group: ClassVar[str] = "gpu_sampling"

    state: SamplingState
    error: Reason = None
    """Why samples are missing, or why the sampling ended early."""
    interval_s: float | None = None
    """Seconds between two samples of a GPU."""
    seconds: float | None = None
    """Duration of the sampling."""
    gpus: tuple[SampledGpu, ...] = ()
    """In order of index, regardless of CUDA_VISIBLE_DEVICES."""

    def contradiction(self, facts: Facts) -> str:
        """Each sampled GPU is the one that the driver lists with its index."""
        gpus = facts.get(Gpus)
        known = {gpu.index: gpu for gpu in gpus.devices if gpu.numbered} if isinstance(gpus, Gpus) else {}
        for sampled in self.gpus:
            gpu = known.get(sampled.index)
            if SHARED in sampled.errors.values():
                return f"another was sampled as GPU {sampled.index}"
            if known and gpu is None:
                return f"GPU {sampled.index} was sampled, which the driver does not list"
            for name in marked(SampledGpu, Identity):
                value, listed = getattr(sampled, name), getattr(gpu, name, None)
                if None not in (value, listed) and value != listed:
                    return f"GPU {sampled.index} is {listed}, and {value} was sampled"
        return ""
