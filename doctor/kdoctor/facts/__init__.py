"""Typed groups of facts: what a machine and an environment are, with no opinion and no I/O."""

from kdoctor.facts.base import FactGroup, Unavailable
from kdoctor.facts.environment import Environment
from kdoctor.facts.gpus import Gpu, GpuPair, GpuProcess, Gpus, NvmlState, TopologyLevel
from kdoctor.facts.host import Host, ResourceLimit
from kdoctor.facts.kernel import DeviceNode, KernelDriver
from kdoctor.facts.packages import Package, Packages, canonical_name
from kdoctor.facts.pci import PciDevice, PciDevices
from kdoctor.facts.smoke import CaseOutcome, SmokeCase, SmokeRun, SmokeRuns, Weights
from kdoctor.facts.target import Choice, EnvironmentKind, Target
from kdoctor.facts.tensorflow import KerasChoice, TensorFlowBuild

__all__ = [
    "CaseOutcome",
    "Choice",
    "DeviceNode",
    "Environment",
    "EnvironmentKind",
    "FactGroup",
    "Gpu",
    "GpuPair",
    "GpuProcess",
    "Gpus",
    "Host",
    "KerasChoice",
    "KernelDriver",
    "NvmlState",
    "Package",
    "Packages",
    "PciDevice",
    "PciDevices",
    "ResourceLimit",
    "SmokeCase",
    "SmokeRun",
    "SmokeRuns",
    "Target",
    "TensorFlowBuild",
    "TopologyLevel",
    "Unavailable",
    "Weights",
    "canonical_name",
]
