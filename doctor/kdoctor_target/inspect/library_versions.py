"""Loads CUDA libraries like TensorFlow does and asks each for its version, in separate processes.

A library that crashes or hangs ends its process only; the next process leaves it out. The calls need no GPU and no
driver, because none makes a CUDA context (``cublasGetVersion_v2`` would, so it is not used).
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import select
import signal
import time
import warnings
from typing import Any, Callable, Dict, NamedTuple, NoReturn, Optional, Sequence, Set, Tuple

Record = Dict[str, Any]

STEP_S = 5.0
"""Seconds that one library may take to load or to answer."""


class Call(NamedTuple):
    """The version call of a library."""

    function: str
    form: str
    """``pointer``: ``status f(int *)``; ``value``: ``size_t f(void)``; ``properties``: ``status f(0..2, int *)``."""
    decode: Callable[[int], str]


def decode_cuda(code: int) -> str:
    """12090 is 12.9."""
    return f"{code // 1000}.{code % 1000 // 10}"


def decode_cudnn(code: int) -> str:
    """8904 is 8.9.4, and 91002 is 9.10.2: cuDNN 9 has more digits for the minor version."""
    return _decode_three(code, wide=code >= 90000)  # noqa: PLR2004 - 9.0.0


def decode_nccl(code: int) -> str:
    """2804 is 2.8.4, and 22707 is 2.27.7: NCCL has more digits for the minor version from 2.9 on."""
    return _decode_three(code, wide=code >= 20000)  # noqa: PLR2004 - 2.9.0 is 20900


def _decode_three(code: int, *, wide: bool) -> str:
    major = 10000 if wide else 1000
    return f"{code // major}.{code % major // 100}.{code % 100}"


CALLS = {
    "cudart": Call("cudaRuntimeGetVersion", "pointer", decode_cuda),
    "cublas": Call("cublasGetProperty", "properties", str),
    "cublasLt": Call("cublasLtGetProperty", "properties", str),
    "cufft": Call("cufftGetProperty", "properties", str),
    "cusolver": Call("cusolverGetProperty", "properties", str),
    "cusparse": Call("cusparseGetProperty", "properties", str),
    "cudnn": Call("cudnnGetVersion", "value", decode_cudnn),
    "nccl": Call("ncclGetVersion", "pointer", decode_nccl),
    "cupti": Call("cuptiGetVersion", "pointer", str),
}
"""By the library's name. If a library's encoding changed over time, its three version properties are read."""

_BUILT_WITH = Call("cudnnGetCudartVersion", "value", decode_cuda)


def read_versions(libraries: Sequence[Tuple[str, str]], budget_s: float) -> Dict[str, Record]:
    """By each library's name: ``version``, ``version_code``, ``built_with``, ``load_error`` or ``version_error``.

    Args:
        libraries: name and path of each, in the order in which TensorFlow opens them, as they depend on each other.
        budget_s: seconds for all of them.
    """
    end_at = time.monotonic() + budget_s
    results: Dict[str, Record] = {}
    dead: Set[str] = set()
    while any(name not in results for name, _ in libraries):
        if time.monotonic() >= end_at:
            why = "not asked: the time limit was reached"
            results.update({name: {"version_error": why} for name, _ in libraries if name not in results})
            break
        culprit, step, how = _run_child(libraries, results, dead, end_at)
        if culprit is None:
            why = f"the process that loads it {how or 'ended early'}"
            results.update({name: {"version_error": why} for name, _ in libraries if name not in results})
            break
        if step == "load":
            dead.add(culprit)
            results.setdefault(culprit, {"load_error": f"the process {how} while it was loaded"})
        else:
            results[culprit] = {"version_error": f"the process {how} in its version call"}
    return results


def _run_child(
    libraries: Sequence[Tuple[str, str]], results: Dict[str, Record], dead: Set[str], end_at: float
) -> Tuple[Optional[str], str, str]:
    """Add the results of one process; if it ends early: the library, the step, and how it ended."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # The watchdog is a C thread that holds no lock, so forking is safe.
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        os.close(reading)
        _be_child(writing, libraries, set(results), dead)
    os.close(writing)
    culprit, step, in_time = _listen(reading, results, end_at)
    os.close(reading)
    if not in_time:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not in_time:
        return culprit, step, "did not return"
    if os.WIFSIGNALED(status):
        return culprit, step, f"died of {signal.Signals(os.WTERMSIG(status)).name}"
    return culprit, step, f"exited with status {os.WEXITSTATUS(status)}"


def _listen(reading: int, results: Dict[str, Record], end_at: float) -> Tuple[Optional[str], str, bool]:
    """Read the child's records; returns its unfinished library and step, if any, and whether it ended in time."""
    culprit: Optional[str] = None
    step = ""
    rest = b""
    while True:
        patience = min(STEP_S, end_at - time.monotonic())
        if patience <= 0 or not select.select([reading], [], [], patience)[0]:
            return culprit, step, False
        chunk = os.read(reading, 65536)
        if not chunk:
            return culprit, step, True
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            record = json.loads(line.decode("utf-8"))
            name = record.pop("name")
            if "step" in record:
                culprit, step = name, record["step"]
            else:
                culprit, step = None, ""
                results.setdefault(name, record)


def _be_child(writing: int, libraries: Sequence[Tuple[str, str]], known: Set[str], dead: Set[str]) -> NoReturn:
    """Load all libraries, ask those that are not known yet, send the answers, and exit."""
    code = 1
    try:
        signal.alarm(60)  # ends this process if kdoctor was killed
        faulthandler.disable()  # a crash here is an expected answer
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no core file
        for name, path in libraries:
            if name not in dead:
                _say(writing, {"name": name, "step": "load"})
                _say(writing, _load_and_ask(writing, name, path, ask=name not in known))
        code = 0
    finally:
        os._exit(code)


def _load_and_ask(writing: int, name: str, path: str, *, ask: bool) -> Record:
    try:
        library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)  # TensorFlow's own mode
    except OSError as error:
        return {"name": name, "load_error": str(error)}
    if not ask or name not in CALLS:
        return {"name": name}
    _say(writing, {"name": name, "step": "ask"})
    record: Record = {"name": name}
    try:
        record["version"], record["version_code"] = ask_version(library, CALLS[name])
        if name == "cudnn":
            record["built_with"] = ask_version(library, _BUILT_WITH)[0]
    except (AttributeError, ValueError) as error:
        record["version_error"] = str(error)
    return record


def _say(writing: int, record: Record) -> None:
    os.write(writing, json.dumps(record).encode("utf-8") + b"\n")


def ask_version(library: ctypes.CDLL, call: Call) -> Tuple[str, Optional[int]]:
    """The version in its usual form, and the number that the library returned.

    Raises:
        AttributeError: the library has no such function.
        ValueError: the call failed.
    """
    function = getattr(library, call.function)
    if call.form == "value":
        function.restype = ctypes.c_size_t
        code = int(function())
        return call.decode(code), code
    if call.form == "properties":
        return ".".join(str(_ask_number(function, call, index)) for index in range(3)), None
    code = _ask_number(function, call)
    return call.decode(code), code


def _ask_number(function: Callable[..., int], call: Call, *first: int) -> int:
    number = ctypes.c_int(-1)
    arguments: Tuple[Any, ...] = (*first, ctypes.byref(number))
    status = function(*arguments)
    if status != 0 or number.value < 0:
        raise ValueError(f"{call.function} failed with status {status}")
    return number.value
