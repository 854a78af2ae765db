"""Typed groups of facts about a machine and an environment: no judgement, no I/O."""

from kdoctor.facts.base import FactGroup, Facts, NotCollected, Unavailable, group_not_collected, is_not_recorded
from kdoctor.facts.environment import Environment
from kdoctor.facts.gpus import (
    FabricState,
    Gpu,
    GpuPair,
    GpuProcess,
    Gpus,
    NvLink,
    NvmlState,
    P2pStatus,
    RecoveryAction,
    TopologyLevel,
)
from kdoctor.facts.host import Disk, Host, NumaNode, ResourceLimit
from kdoctor.facts.kernel import DeviceNode, Kernel, KernelDriver, KernelLog, KernelLogEvent, KernelLogKind
from kdoctor.facts.libraries import (
    LIBRARY_NAMES,
    FrameworkLibrary,
    Libraries,
    Library,
    LibraryCopy,
    SearchPlace,
    SkippedFile,
    XlaFile,
)
from kdoctor.facts.node import Launcher, Node
from kdoctor.facts.packages import TENSORFLOWS, Package, PackageFault, Packages, canonical_name
from kdoctor.facts.pci import TRANSLATED, PciBridge, PciDevice, PciDevices, PciFunction, link_gbs, link_generation
from kdoctor.facts.sampling import CaseUse, EventTime, GpuSampling, GpuSeries, GpuUse, SampledGpu, Spread
from kdoctor.facts.smoke import (
    BitDifference,
    CaseOutcome,
    PairOutcome,
    SmokeCase,
    SmokePair,
    SmokeRun,
    SmokeRuns,
    SmokeWorker,
    Weights,
)
from kdoctor.facts.target import EnvironmentKind, Target
from kdoctor.facts.tensorflow import KerasChoice, TensorFlowBuild

__all__ = [
    "LIBRARY_NAMES", "TENSORFLOWS", "TRANSLATED", "BitDifference", "CaseOutcome", "CaseUse", "DeviceNode", "Disk",
    "Environment", "EnvironmentKind", "EventTime", "FabricState", "FactGroup", "Facts", "FrameworkLibrary", "Gpu",
    "GpuPair", "GpuProcess", "GpuSampling", "GpuSeries", "GpuUse", "Gpus", "Host", "KerasChoice", "Kernel",
    "KernelDriver", "KernelLog", "KernelLogEvent", "KernelLogKind", "Launcher", "Libraries", "Library", "LibraryCopy",
    "Node", "NotCollected", "NumaNode", "NvLink", "NvmlState", "P2pStatus", "Package", "PackageFault", "Packages",
    "PairOutcome", "PciBridge", "PciDevice", "PciDevices", "PciFunction", "RecoveryAction", "ResourceLimit",
    "SampledGpu", "SearchPlace", "SkippedFile", "SmokeCase", "SmokePair", "SmokeRun", "SmokeRuns", "SmokeWorker",
    "Spread", "Target", "TensorFlowBuild", "TopologyLevel", "Unavailable", "Weights", "XlaFile", "canonical_name",
    "group_not_collected", "is_not_recorded", "link_gbs", "link_generation",
]  # fmt: skip
