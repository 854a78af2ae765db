"""Keeps the first GPU busy, or holds its memory, until standard input closes.

Usage: ``occupy.py hold BYTES``, ``occupy.py exhaust`` or ``occupy.py compute``. The first line of its output is JSON:
what it holds, or ``{"skip": <why it cannot>}``.

Memory is taken with plain allocations of the CUDA driver (cuMemAlloc), which need no framework.
"""

import ctypes
import importlib.util
import json
import os
import sys
import threading
from typing import Any, NoReturn

MIB = 1024**2
_ENDED = threading.Event()
_SIZES = tuple(size * MIB for size in (4096, 1024, 256, 64, 16, 4))


def say(**facts: Any) -> None:
    """Print one line of JSON."""
    print(json.dumps(facts), flush=True)  # noqa: T201


def skip(reason: str) -> NoReturn:
    """Say why it cannot, and end."""
    say(skip=reason)
    sys.exit(0)


class Cuda:
    """The calls of the CUDA driver that allocate memory."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            skip(f"the CUDA driver cannot be loaded: {error}")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._expect("cuInit", 0)
        self._expect("cuDeviceGet", ctypes.byref(device), 0)
        self._expect("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._expect("cuCtxSetCurrent", context)

    def _expect(self, call: str, *arguments: Any) -> None:
        code = getattr(self._library, call)(*arguments)
        if code:
            skip(f"{call} returned CUDA error {code}")

    def free(self) -> int:
        """Free bytes."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._expect("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def take(self, size: int) -> bool:
        """Allocate bytes; returns whether that worked."""
        pointer = ctypes.c_uint64()
        return bool(self._library.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0)


def hold(size: int) -> None:
    """Hold bytes."""
    cuda = Cuda()
    if not cuda.take(size):
        skip(f"{size // MIB} MiB could not be allocated, {cuda.free() // MIB} MiB are free")
    say(held_bytes=size, free_bytes=cuda.free())


def exhaust() -> None:
    """Hold all memory, in ever smaller pieces."""
    cuda, held = Cuda(), 0
    for size in _SIZES:
        while cuda.take(size):
            held += size
    say(held_bytes=held, free_bytes=cuda.free())


def compute() -> None:
    """Multiply matrices with the framework that is installed, until standard input closes."""
    cuda = Cuda()
    cuda.take(MIB)
    rehearsed = "KDOCTOR_GPU_REHEARSAL" in os.environ
    size = 256 if rehearsed else 8192
    step, platform = _product(size)
    if platform != "gpu" and not rehearsed:
        skip(f"the framework computes on {platform}, not on the GPU")
    step()
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    say(platform=platform, size=size)
    while not _ENDED.is_set():
        step()


def _end_with_stdin() -> None:
    sys.stdin.read()
    _ENDED.set()


def _product(size: int) -> Any:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if importlib.util.find_spec("jax"):
        import jax
        import jax.numpy as jnp

        product = jax.jit(lambda one: one @ one / size)
        matrix = jax.random.normal(jax.random.key(0), (size, size), jnp.bfloat16)
        return lambda: product(matrix).block_until_ready(), jax.devices()[0].platform
    if importlib.util.find_spec("tensorflow"):
        import tensorflow as tf

        matrix = tf.random.normal((size, size))
        platform = "gpu" if tf.config.list_physical_devices("GPU") else "cpu"
        return (lambda: tf.matmul(matrix, matrix)[0, 0].numpy()), platform  # noqa: PLW0108 - a function
    return skip("neither JAX nor TensorFlow is installed")


def main(mode: str, *arguments: str) -> None:
    """Do it until standard input closes."""
    if mode == "hold":
        hold(int(arguments[0]))
    elif mode == "exhaust":
        exhaust()
    else:
        compute()
    if mode != "compute":
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
