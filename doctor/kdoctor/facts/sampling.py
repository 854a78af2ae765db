"""What the GPUs did while the smoke trainings ran, sampled through NVML about twice a second.

Summaries, and a short series for plots: what is kept does not grow with the length of the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from kdoctor.facts.base import FactGroup
from kdoctor.facts.gpus import NvmlState

SamplingState = NvmlState | Literal["not-started"]
"""``ready``: every GPU was sampled; ``not-started``: no training ran on GPUs; else why NVML could not be asked."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A reading over a time."""

    low: float
    mean: float
    """Of the samples, which are taken at equal distances."""
    high: float


@dataclass(frozen=True, kw_only=True)
class EventTime:
    """One of the clocks' event reasons (``facts.gpus.EVENT_...``), and how long it stood."""

    bit: int
    seconds: float
    """Each sample stands for the time since the one before it."""
    samples: int
    in_a_row: int
    """The most samples one after another: a reason that flashes when the performance state changes stands in one."""


@dataclass(frozen=True, kw_only=True)
class GpuUse:
    """One GPU's readings over a time. A reading that could not be had is None."""

    samples: int = 0
    utilization_gpu_percent: Spread | None = None
    """Share of time in which a kernel ran; the driver averages it over up to one second before the sample."""
    utilization_memory_percent: Spread | None = None
    memory_used_bytes: Spread | None = None
    temperature_c: Spread | None = None
    temperature_margin_c: Spread | None = None
    """T.Limit: degrees left until it throttles."""
    power_draw_w: Spread | None = None
    clock_sm_mhz: Spread | None = None
    performance_state: Spread | None = None
    """P-state: 0 is the fastest."""
    processes: Spread | None = None
    """Number of compute processes."""
    pcie_sent_bytes_s: Spread | None = None
    """Bytes per second that left over PCIe, by the counter's growth between two samples."""
    pcie_received_bytes_s: Spread | None = None
    events: tuple[EventTime, ...] = ()
    """In order of the bits."""


@dataclass(frozen=True, kw_only=True)
class CaseUse:
    """One GPU's readings while one case ran. Cases run one at a time on GPUs."""

    scenario: str
    case: str
    samples: int
    training_samples: int
    """Those that were taken while it trained: each replica's variables lie on its device by then."""
    utilization_gpu_percent: Spread | None = None
    """Without samples of the case's first second, in which the driver still averages what was before."""
    memory_used_bytes: Spread | None = None
    processes: Spread | None = None
    events: tuple[EventTime, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GpuSeries:
    """A few readings over the run, at equal distances, each the mean of its samples; None where there is none."""

    every_s: float
    """Distance of the points; the first one begins with the sampling."""
    utilization_gpu_percent: tuple[float | None, ...] = ()
    memory_used_bytes: tuple[float | None, ...] = ()
    temperature_c: tuple[float | None, ...] = ()
    power_draw_w: tuple[float | None, ...] = ()
    clock_sm_mhz: tuple[float | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SampledGpu:
    """One GPU over the run. A field that could not be read is None, and its NVML error stands in ``errors``."""

    index: int
    """NVML's index, which is nvidia-smi's."""
    name: str | None = None
    uuid: str | None = None
    bus_id: str | None = None
    """PCI address in sysfs form."""
    enforced_power_limit_w: float | None = None
    clock_sm_max_mhz: int | None = None
    temperature_slowdown_c: int | None = None
    """Where it slows itself down; older families only."""
    temperature_slowdown_margin_c: int | None = None
    """Margin at which it slows itself down: zero or negative; newer families."""
    before: GpuUse = field(default_factory=GpuUse)
    """Before the first case began."""
    during: GpuUse = field(default_factory=GpuUse)
    """From the beginning of the first case on."""
    cases: tuple[CaseUse, ...] = ()
    """In the order in which they ran; empty where several ran at once, for nothing can be told apart then."""
    series: GpuSeries | None = None
    longest_gap_s: float | None = None
    """The longest time without a sample, the one up to the end among them."""
    hangs: str | None = None
    """The field whose call had not returned when the run ended, if one had not."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Field name to the name of the NVML error that its call returned last."""

    @property
    def subject(self) -> str:
        """The GPU's name in reports: index and bus id."""
        return f"GPU {self.index} ({self.bus_id})" if self.bus_id else f"GPU {self.index}"


@dataclass(frozen=True, kw_only=True)
class GpuSampling(FactGroup):
    """Every GPU of the machine while the smoke trainings ran."""

    group: ClassVar[str] = "gpu_sampling"

    state: SamplingState
    error: str | None = None
    """Why nothing was sampled, or why the sampling ended early."""
    interval_s: float | None = None
    """Seconds from one sample of a GPU to the next."""
    seconds: float | None = None
    """From the beginning of the sampling to its end."""
    gpus: tuple[SampledGpu, ...] = ()
    """In order of index, whatever CUDA_VISIBLE_DEVICES says."""
