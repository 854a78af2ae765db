"""Rules about Dockerfiles and compose files. :mod:`kdoctor_lint.containers` applies them."""

from __future__ import annotations

from kdoctor.model import Severity
from kdoctor_lint.model import Rule

_SERVICE = """services:
  train:
    image: example/train:7
    deploy:
      resources:
        reservations:
          devices: [{driver: nvidia, count: all, capabilities: [gpu]}]
"""
_COMPLETE = f"""{_SERVICE}    shm_size: 1gb
    ulimits: {{memlock: -1}}
"""

CONTAINER_VERSIONS = Rule(
    id="lint.container-versions",
    code="KD601",
    severity=Severity.ERROR,
    title="Checks for images whose Python, CUDA or packages do not fit the TensorFlow that is installed in them.",
    why="""pip refuses a TensorFlow without wheels for the image's Python, after the image was built for minutes. A
TensorFlow without its CUDA wheels loads the CUDA libraries of the image; with another major version it finds none and
trains on the CPU. Combinations that the version matrix knows as bad give wrong results. What the file itself passes to
`pip install` is read, and not the files that it names with `-r`.""",
    fix="Choose versions that fit: `kdoctor matrix --tensorflow VERSION` lists what a release needs.",
    bad='FROM python:3.13-slim\nRUN pip install "tensorflow[and-cuda]==2.15.1"\n',
    good='FROM python:3.11-slim\nRUN pip install "tensorflow[and-cuda]==2.15.1"\n',
    sources=("https://www.tensorflow.org/install/source#gpu", "docs/version-matrix.md"),
)
CONTAINER_GPUS = Rule(
    id="lint.container-gpus",
    code="KD602",
    severity=Severity.WARNING,
    title="Checks for compose services with a CUDA image and without GPUs.",
    why="A container sees no GPU unless the service reserves it. TensorFlow then trains on the CPU without an error.",
    fix="Reserve the GPUs of the service.",
    bad="services:\n  train:\n    image: tensorflow/tensorflow:2.15.0-gpu\n",
    good=_COMPLETE,
    sources=("https://docs.docker.com/compose/how-tos/gpu-support/",),
)
CONTAINER_SHARED_MEMORY = Rule(
    id="lint.container-shared-memory",
    code="KD603",
    severity=Severity.WARNING,
    title="Checks for compose services with several GPUs and less than 1 GiB of shared memory.",
    why="""NCCL exchanges data between GPUs in `/dev/shm`, which has 64 MiB in a container by default. With several GPUs
it fails at the first all-reduce, or hangs.""",
    fix="Set `shm_size: 1gb`, or `ipc: host`. A service with `count: 1` needs neither.",
    bad=_SERVICE,
    good=_COMPLETE,
    sources=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html#sharing-data",),
)
CONTAINER_LOCKED_MEMORY = Rule(
    id="lint.container-locked-memory",
    code="KD604",
    severity=Severity.INFO,
    title="Checks for compose services with GPUs and a limit of locked memory.",
    why="NCCL locks memory for transfers, above all over InfiniBand. The limit of a container is 64 KiB to 8 MiB.",
    fix="Set `ulimits: {memlock: -1}`, or `cap_add: [IPC_LOCK]`.",
    bad=_SERVICE,
    good=_COMPLETE,
    sources=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html#sharing-data",),
)
