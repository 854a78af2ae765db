"""Messages as programs print them, and texts that only look like them.

The messages are those of TensorFlow, Keras, NCCL and the driver, in forms that no example of a failure has.
"""

from functools import cache

import pytest

from kdoctor.catalog.load import load_catalog
from kdoctor.failures.known import KnownFailures, load_failures
from kdoctor.failures.match import Match, find_matches, near_misses


@cache
def known() -> KnownFailures:
    return load_failures()


def name_of(match: Match) -> str:
    """The failure's id."""
    return "harmless" if match.known.harmless else match.known.id


def found(text: str) -> list[str]:
    return [name_of(match) for match in find_matches(text, known())]


CPU_ONLY_LOG = """\
2026-11-21 15:18:02.514032: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on.
2026-11-21 15:18:02.514360: I external/local_xla/xla/tsl/cuda/cudart_stub.cc:31] Could not find cuda drivers on your \
machine, GPU will not be used.
2026-11-21 15:18:02.560003: I tensorflow/core/platform/cpu_feature_guard.cc:210] This TensorFlow binary is optimized \
to use available CPU instructions in performance-critical operations.
E0000 00:00:1795351963.312537   11528 cuda_platform.cc:52] failed call to cuInit: INTERNAL: CUDA error: Failed call \
to cuInit: UNKNOWN ERROR (303)
"""
NUMA = "successful NUMA node read from SysFS had negative value (-1), but there must be at least one NUMA node"
CUDNN_LOG = """\
E0000 00:00:1744708234.717753 1370911 cuda_dnn.cc:8579] Unable to register cuDNN factory: Attempting to register \
factory for plugin cuDNN when one has already been registered
2026-11-21 10:11:12.1: E tensorflow/compiler/xla/stream_executor/cuda/cuda_dnn.cc:445] Loaded runtime CuDNN library: \
8.2.4 but source was compiled with: 8.6.0.  CuDNN library needs to have matching major version and equal or higher \
minor version.
Traceback (most recent call last):
  File "/home/ada/train.py", line 41, in <module>
    model.fit(dataset, epochs=30)
tensorflow.python.framework.errors_impl.UnimplementedError: Graph execution error
"""

PART = "find cuda drivers on your machine"
"""A part of a message is only recognised alone."""
REAL = [
    ("Could not find cuda drivers on your machine, GPU will not be used.", "cudart_not_found"),
    ("could not find cuda drivers", "cudart_not_found"),
    (PART, "cudart_not_found"),
    (f"I0000 00:00:1795943790.58 156 cudart_stub.cc:31] {PART}", "cudart_not_found"),
    (f"tensorflow.Error: {PART}", "cudart_not_found"),
    (
        (
            "2023-01-04 12:03:44.481205: W "
            "tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load "
            "dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared object file"
        ),
        "cudart_not_found",
    ),
    ("I cudart_stub.cc:29] Ignore above cudart dlerror if you do not have a GPU set up.", "cudart_not_found"),
    (CPU_ONLY_LOG, "libcuda_missing"),
    (
        (
            "W0000 00:00:1716972000.1 gpu_device.cc:2344] Cannot dlopen "
            "some GPU libraries. Please make sure the missing "
            "libraries mentioned above are installed properly.\nSkipping registering GPU devices..."
        ),
        "tf2161_runpath",
    ),
    ("ImportError: libnvJitLink.so.12: cannot open shared object file", "mixed_cuda_components"),
    (
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.183",
        "kernel_dso_mismatch",
    ),
    (
        (
            "NVRM: API mismatch: the client has the version 470.57.02, but\nNVRM: this kernel module has the version "
            "460.91.03."
        ),
        "kernel_dso_mismatch",
    ),
    ("AMD-Vi: Event logged [IO_PAGE_FAULT device=41:00.0 domain=0x000f address=0xb1139068 flags=0x0030]", "iommu_acs"),
    ('RuntimeError: Need to be inside "with strategy.scope()" for <MirroredStrategy>', "model_outside_scope"),
    ("A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.1.0 as it may crash.", "numpy2_abi"),
    ("Unable to determine the device handle for GPU 0000:4C:00.0: GPU is lost.", "gpu_lost"),
    ("NVRM: Xid (PCI:0000:07:00): 74, pid=1, NVLink: fatal error detected on link 6", "nvlink_failed"),
    (
        (
            "TypeError: Descriptors cannot be created directly.\nIf this call came from a _pb2.py file, your generated "
            "code is out of date"
        ),
        "protobuf_mismatch",
    ),
    ("cuda_dnn.cc:329] Could not create cudnn handle: CUDNN_STATUS_NOT_INITIALIZED", "cudnn_not_initialized"),
    (
        (
            "Unable to register cuFFT factory: Attempting to register "
            "factory for plugin cuFFT when one has already been "
            "registered"
        ),
        "harmless",
    ),
]


@pytest.mark.parametrize(("text", "name"), REAL, ids=range(len(REAL)))
def test_real_message_is_recognised_first(text: str, name: str) -> None:
    assert found(text)[:1] == [name]


WHOLE = [(text, name) for text, name in REAL if not text.endswith(PART)]

UNRELATED = [
    "ModuleNotFoundError: No module named 'requests'",
    "ModuleNotFoundError: No module named 'tensorflow_datasets_extra'",
    "KeyError: 'label'",
    "TypeError: build() missing 1 required positional argument: 'input_shape'",
    "ValueError: Shapes (None, 10) and (None, 1) are incompatible",
    "ConnectionRefusedError: [Errno 111] Connection refused",
    "torch.cuda.is_available() returned False",
    "PermissionError: [Errno 13] Permission denied: '/data/train.tfrecord'",
    "FileNotFoundError: [Errno 2] No such file or directory: 'weights.h5'",
    "config.json: No such file or directory",
    "OSError: No such file or directory",
    "SyntaxError: invalid syntax",
    "AssertionError",
    "error",
    "GPU",
    "Epoch 1/30\n120/120 - 9s - loss: 0.4127 - accuracy: 0.8512",
    (
        "I tensorflow/core/common_runtime/gpu/gpu_device.cc:2022] "
        "Created device /job:localhost/replica:0/task:0/device:"
        "GPU:0 with 79111 MB memory:  -> device: 0, name: NVIDIA H100 80GB HBM3, pci bus id: 0000:18:00.0"
    ),
    "The quick brown fox jumps over the lazy dog.",
    "fatal: not a git repository (or any of the parent directories): .git",
    "ERROR: Could not find a version that satisfies the requirement kears (from versions: none)",
    "",
]


@pytest.mark.parametrize("text", [*UNRELATED, "libGL.so.1: cannot open shared object file"])
def test_unrelated_text_matches_nothing(text: str) -> None:
    assert found(text) == []


def disguised(text: str) -> list[str]:
    """The text as it arrives from terminals, mails and logs."""
    words = text.split()
    return [
        text.upper(),
        "\x1b[31m" + "\x1b[0m \x1b[1m".join(words) + "\x1b[0m",
        "\n".join(text[start : start + 40] for start in range(0, len(text), 40)),
        "\n".join(f"│ {line:<60} │" for line in text.splitlines()),
        "\n".join(f"> {line}" for line in text.splitlines()),
        text.replace("\n", "\r\n"),
        text.replace("\n", "\\n").replace('"', '\\"'),
        f"2026-11-22T10:11:12Z stderr F {text}\n2026-11-22T10:11:12Z stderr F done\n",
        "import tensorflow as tf\n" * 2000 + text + "\nEpoch 1/30\n" * 2000,
    ]


@pytest.mark.parametrize(("text", "name"), WHOLE, ids=range(len(WHOLE)))
def test_form_of_the_text_does_not_matter(text: str, name: str) -> None:
    for other in disguised(text):
        assert found(other)[:1] == [name], other[:200]


def test_log_with_several_messages_names_each_once() -> None:
    assert found(CPU_ONLY_LOG) == ["libcuda_missing", "cudart_not_found"]
    assert found(CUDNN_LOG) == ["cudnn_older_than_build", "harmless"]
    assert found(f"{NUMA}\nncclRemoteError") == ["nccl_remote_error", "harmless"]


def test_misspelt_message_is_a_near_miss() -> None:
    assert found("could nt find cuda librarys on the machine") == []
    assert [name_of(match) for match in near_misses("could nt find cuda librarys on the machine", known())] == [
        "cudart_not_found"
    ]
    assert near_misses("ModuleNotFoundError: No module named 'requests'", known()) == ()


@pytest.mark.parametrize("text", [text for text in UNRELATED if "module" not in text], ids=repr)
def test_unrelated_text_is_no_near_miss(text: str) -> None:
    assert near_misses(text, known()) == ()


def test_every_message_recognises_itself() -> None:
    for failure in known().failure_modes:
        for example in failure.examples:
            assert failure.id in {match.known.id for match in find_matches(example.log, known())} or failure.at_end


def test_named_checks_and_failures_exist() -> None:
    checks = load_catalog().checks
    names = [name for failure in known().failure_modes for name in failure.checks]
    assert [name for name in names if name not in checks] == []
    names = [name for failure in known().failure_modes for name in failure.explains]
    assert [name for name in names if name not in known().by_id] == []


def test_what_a_failure_excludes_is_another_one() -> None:
    assert "process_pipe_closed" in {match.known.id for match in find_matches("EOFError", known())}
    assert not find_matches("EOFError: EOF when reading a line", known())
