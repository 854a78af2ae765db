"""Names the checks that explain why a training failed, by what the training reports."""

import re

from packaging.specifiers import SpecifierSet

from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor_checks._versions import meets, parse_version

BASELINE = "smoke.baseline"

BROKEN_INSTALLATION = (
    "versions.tensorflow-installed",
    "versions.python-supported",
    "versions.one-tensorflow",
    "versions.package-conflicts",
    "versions.known-bad",
)
"""What makes the import of TensorFlow or of its Keras fail."""

NO_GPU = (
    "driver.loaded",
    "driver.library-matches-module",
    "driver.libcuda-found",
    "driver.device-nodes",
    "driver.unified-memory-node",
    "versions.cuda-build",
    "driver.forward-compatibility",
    "versions.cuda-libraries",
    "versions.cuda-libraries-match",
    "versions.libraries-searched",
    "versions.driver-for-cuda",
    "topology.fabric",
    "topology.fabric-manager",
    "environment.visible-devices",
)
"""What makes TensorFlow register no GPU at all."""

FEWER_GPUS = ("gpu.responding", "gpu.visible-to-driver", "driver.device-nodes", "environment.visible-devices")
"""What makes TensorFlow register some GPUs, but not all."""

WRONG_WEIGHTS = SpecifierSet(">=3.0,<3.8")
"""Releases of Keras that combine the gradients of the replicas incorrectly, as in the version matrix."""
WRONG_LOSSES = SpecifierSet(">=3.0,<3.10")
"""Releases of Keras with incorrect losses and metrics on several replicas, as in the version matrix."""

_FAULTY_HARDWARE = (
    "gpu.responding",
    "gpu.ecc-errors",
    "gpu.sram-errors",
    "gpu.kernel-log",
    "topology.acs",
    "topology.iommu-faults",
    "topology.nvlink",
    "topology.nvswitch-errors",
)
"""What corrupts transfers between GPUs, or stops them. All of these are errors."""

_OF_MESSAGES = (
    (
        r"PTX|no kernel image|CUDA_ERROR_NO_BINARY|not compatible with this device",
        ("versions.gpu-code", "versions.driver-for-ptx"),
    ),
    (
        r"cudnn|DNN library|convolution algorithm",
        ("versions.cudnn-for-build", "versions.cudnn-for-gpus", "versions.known-hazards"),
    ),
    (r"libdevice|ptxas", ("versions.xla-files",)),
    (r"out of memory|OOM when|ResourceExhausted|CUDA_ERROR_OUT_OF_MEMORY", ("gpu.free",)),
    (
        r"nccl",
        ("host.shared-memory", "host.locked-memory", "gpu.compute-mode", "topology.fabric-manager", "topology.fabric"),
    ),
)
"""Pattern of an error or a log line to the checks that explain it."""

_BACKENDS = re.compile(r"WrongBackendError|\bkeras\b|\btf_keras\b|\bjax\b|\btorch\b|\bopenvino\b", re.IGNORECASE)


def of_import(run: SmokeRun) -> tuple[str, ...]:
    """The checks that explain why the framework was not imported; none if it was."""
    if run.failure is None or run.tensorflow is not None or not _on_tensorflow(run):
        return ()
    keras = ("versions.keras-compatible",) if _BACKENDS.search(run.failure) else ()
    return (*keras, *BROKEN_INSTALLATION, *_baseline(run))


def of_end(run: SmokeRun, case: SmokeCase) -> tuple[str, ...]:
    """The checks that explain why a case raised, crashed or hung."""
    if not _on_tensorflow(run):
        return ()
    found: list[str] = []
    if case.error_type in ("ImportError", "ModuleNotFoundError", "AttributeError"):
        found += BROKEN_INSTALLATION
    if case.signal == "SIGKILL":
        found.append("host.memory")
    if run.devices_kind == "gpu":
        text = "\n".join([case.error_type or "", case.error_message or "", *case.log_lines, case.stderr_tail or ""])
        found += [check for pattern, ids in _OF_MESSAGES if re.search(pattern, text, re.IGNORECASE) for check in ids]
        if case.outcome == "died":
            found += ["versions.gpu-code", "versions.cudnn-for-build", "versions.cudnn-for-gpus"]
        found += _FAULTY_HARDWARE
    return (*dict.fromkeys(found), *_baseline(run))


def of_weights(run: SmokeRun) -> tuple[str, ...]:
    """The checks that explain weights that are not those of one device."""
    hardware = _FAULTY_HARDWARE if run.devices_kind == "gpu" and _on_tensorflow(run) else ()
    known = ("versions.keras-compatible",) if has_keras(run, WRONG_WEIGHTS) else ()
    return (*known, "versions.known-bad", *hardware, *_baseline(run))


def of_losses(run: SmokeRun) -> tuple[str, ...]:
    """The checks that explain reported losses or metrics that are not those of one device."""
    known = ("versions.keras-compatible",) if has_keras(run, WRONG_LOSSES) else ()
    return (*known, "versions.known-bad", *_baseline(run))


def of_replicas(run: SmokeRun) -> tuple[str, ...]:
    """The checks that explain fewer replicas than GPUs."""
    if run.devices_kind != "gpu":
        return ()
    return (*(NO_GPU if not run.gpus_seen else FEWER_GPUS), "gpu.replicas-match", *_baseline(run))


def has_keras(run: SmokeRun, releases: SpecifierSet) -> bool:
    """Whether TensorFlow trained with one of these releases of Keras 3."""
    name, _, text = (run.keras or "").partition(" ")
    version = parse_version(text)
    return name == "keras" and _on_tensorflow(run) and version is not None and meets(version, releases)


def _on_tensorflow(run: SmokeRun) -> bool:
    return not (run.jax or run.torch)


def _baseline(run: SmokeRun) -> tuple[str, ...]:
    """The simplest training of this framework, which comes first."""
    return () if run.scenario == BASELINE or not _on_tensorflow(run) else (BASELINE,)
