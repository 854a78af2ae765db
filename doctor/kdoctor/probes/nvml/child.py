"""The process that calls NVML. It never runs inside kdoctor itself.

Each GPU is read in a separate thread (a lane), because NVML waits for the hardware, and a GPU that hangs must not block
the others. Before each call a lane sends a record ``{"lane": ..., "at": <call>}``, to locate a hang or a crash. At the
end the process sends ``{"facts": <fields of Gpus>}``. A failed call is recorded by NVML's error name.
"""

import errno
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pynvml

from kdoctor.probes.nvml.calls.answers import Failure, Read
from kdoctor.probes.nvml.calls.links import links
from kdoctor.probes.nvml.calls.one_gpu import FIELDS, JOINT, clock_event_reasons
from kdoctor.probes.nvml.calls.pairs import PAIR_FIELDS, SYSTEM_FIELDS
from kdoctor.probes.nvml.lanes import Lane, Records, Send, arm_watchdog, initialise

_LANES_SHARE = 0.8
"""Share of the deadline after which GPUs that have not answered are given up, and the facts of the others are sent."""

_READINGS = 3
_READING_S = 0.05
"""The clocks' event reasons change with the performance state, so they are read several times, at this interval."""


def main(settings: Mapping[str, Any]) -> None:
    """Send the facts. ``settings``: ``deadline_s``, in seconds; ``root``, the folder above /dev."""
    deadline_s = float(settings["deadline_s"])
    arm_watchdog(deadline_s)
    Reader(Records().send, deadline_s * _LANES_SHARE, Path(settings.get("root", "/"))).read_all()


class Reader:
    """Calls NVML and records each call's error."""

    def __init__(self, send: Send, patience_s: float, root: Path) -> None:
        self._send = send
        self._patience_s = patience_s
        self._give_up_at = time.monotonic() + patience_s
        self._root = root

    def read_all(self) -> None:
        """Send everything that NVML reports."""
        failure = initialise(self._send)
        if failure:
            self._send({"facts": failure})
            return
        facts, stuck = self._read_driver()
        self._send({"facts": facts})
        if stuck:
            os._exit(0)  # an ordinary exit would wait for the thread that hangs in the driver
        self._send({"at": "nvmlShutdown"})
        pynvml.nvmlShutdown()

    def _read_driver(self) -> tuple[dict[str, Any], bool]:
        """The facts, and whether a GPU hangs in a call."""
        system = Lane("system", "", self._send)
        for field, read in SYSTEM_FIELDS.items():
            system.read((field,), read)
        system.end()
        gpus = [_GpuLane(index, self._send) for index in range(system.facts.get("count") or 0)]
        self._run([gpu.open for gpu in gpus])
        opened = [gpu for gpu in gpus if gpu.handle is not None]
        _share_pairs(opened)
        # The slow readings start first, because they mostly wait.
        self._run([*(gpu.read_clocks for gpu in opened), *(gpu.read_all for gpu in opened)])
        for gpu in gpus:
            gpu.give_up(self._patience_s)
        facts = {
            **system.facts,
            "state": "ready",
            "errors": system.errors,
            "devices": [{"index": gpu.index, **gpu.facts, "errors": gpu.errors} for gpu in gpus],
            "pairs": _pairs(gpus),
            "node_errors": node_errors(self._root),
        }
        return facts, any(gpu.stuck for gpu in gpus)

    def _run(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Run the tasks at once; return when all have ended, or at the time limit."""
        threads = [threading.Thread(target=task, daemon=True) for task in tasks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=max(0.0, self._give_up_at - time.monotonic()))


class _GpuLane(Lane):
    """One GPU: its own facts, and its share of the pairs."""

    def __init__(self, index: int, send: Send) -> None:
        subject = f"GPU {index}: "
        super().__init__(f"GPU {index}", subject, send)
        self.index = index
        self.handle: Any = None
        self.pairs: dict[int, _PairLane] = {}
        """The pairs that this lane reads, by index of the other GPU."""
        self.stuck = False
        """Whether a call has not returned."""
        self._clocks = Lane(f"GPU {index} clocks", subject, send)

    def open(self) -> None:
        """Get the GPU's handle, which wakes a sleeping GPU."""
        self.read(("handle",), lambda: pynvml.nvmlDeviceGetHandleByIndex(self.index))
        self.handle = self.facts.pop("handle", None)
        self.end()

    def read_clocks(self) -> None:
        """Read the clocks' event reasons several times, while the other facts are read."""
        self._clocks.read(("clock_event_reasons",), self._clock_event_reasons)
        self._clocks.end()

    def _clock_event_reasons(self) -> tuple[int, ...]:
        readings = [clock_event_reasons(self.handle)]
        for _ in range(_READINGS - 1):
            time.sleep(_READING_S)
            readings.append(clock_event_reasons(self.handle))
        return tuple(readings)

    def read_all(self) -> None:
        """Read every other field, then the pairs."""
        began = time.monotonic()
        for fields, read in _READS.items():
            self.read(fields, lambda read=read: read(self.handle))  # type: ignore[misc]
        self.facts["answers_s"] = round(time.monotonic() - began, 3)
        for pair in self.pairs.values():
            pair.read_all()
        self.end()

    def give_up(self, patience_s: float) -> None:
        """Add the results of the clocks' thread, and an error for each field that was not read because a call hangs."""
        late = (*self.pending, *self._clocks.pending)
        self.stuck = bool(late) or any(pair.pending for pair in self.pairs.values())
        self.facts = {**self.facts, **self._clocks.facts}
        self.errors = {
            **self.errors,
            **self._clocks.errors,
            **dict.fromkeys(late, f"no answer within {patience_s:g} s"),
        }
        if self.pending and self.handle is not None:
            unread = (field for fields in _READS for field in fields if field not in self.facts)
            self.errors = {**dict.fromkeys(unread, f"not asked: {self.pending[0]} hangs"), **self.errors}


_READS: dict[tuple[str, ...], Read] = {
    **{(field,): read for field, read in FIELDS.items()},
    **JOINT,
    ("nvlinks",): links,
}
"""Fields of ``Gpu`` (except the clocks' event reasons) to the call that reads them."""


class _PairLane(Lane):
    """Two GPUs, read by the lane of one of them."""

    def __init__(self, first: _GpuLane, second: _GpuLane) -> None:
        subject = f"GPU {first.index} - GPU {second.index}: "
        super().__init__(first._name, subject, first._send)  # noqa: SLF001 - part of its GPU's lane
        self._handles = first.handle, second.handle
        self.done = False

    def read_all(self) -> None:
        """Read every field."""
        for field, read in PAIR_FIELDS.items():
            self.read((field,), lambda read=read: read(*self._handles))  # type: ignore[misc]
        self.done = True


def _share_pairs(gpus: Sequence[_GpuLane]) -> None:
    """Give each GPU's lane the pairs with the half of the others that follow it in a circle: equal shares."""
    count = len(gpus)
    for distance in range(1, count // 2 + 1):
        for place, gpu in enumerate(gpus):
            other = gpus[(place + distance) % count]
            if gpu.index not in other.pairs:
                gpu.pairs[other.index] = _PairLane(gpu, other)


def _pairs(gpus: Sequence[_GpuLane]) -> list[dict[str, Any]]:
    """Each unordered pair once, with the NVLinks that both sides report."""
    return [_pair(first, second) for place, first in enumerate(gpus) for second in gpus[place + 1 :]]


def _pair(first: _GpuLane, second: _GpuLane) -> dict[str, Any]:
    pair: dict[str, Any] = {"first": first.index, "second": second.index, "level": None}
    lane = first.pairs.get(second.index) or second.pairs.get(first.index)
    if lane is None:
        lost = first if first.handle is None else second
        return {**pair, "error": f"GPU {lost.index} could not be opened"}
    errors = dict(lane.errors)
    if not lane.done:
        hanging = next((gpu for gpu in (first, second) if gpu.pending), first)
        errors = {**dict.fromkeys(PAIR_FIELDS, f"not asked: a call about GPU {hanging.index} hangs"), **errors}
        errors = {field: error for field, error in errors.items() if field not in lane.facts}
    level_error = errors.pop("level", None)
    nvlinks = _nvlinks(first, second)
    if isinstance(nvlinks, Failure):
        errors["nvlinks"] = nvlinks.error
    else:
        pair["nvlinks"] = nvlinks
    return {**pair, **lane.facts, "error": level_error, "errors": errors}


def _nvlinks(first: _GpuLane, second: _GpuLane) -> int | Failure:
    """The number of active NVLinks between two GPUs; through switches, the smaller number of links into them."""
    counts: list[int] = []
    for one, other in ((first, second), (second, first)):
        if "nvlinks" not in one.facts:
            return Failure(one.errors["nvlinks"])
        unread = [link for link in one.facts["nvlinks"] if {"active", "remote_kind"} & set(link["errors"])]
        if unread:
            return Failure(f"GPU {one.index} does not report its link {unread[0]['index']}")
        counts.append(sum(_leads_to(link, other.facts.get("bus_id")) for link in one.facts["nvlinks"]))
    return min(counts)


def _leads_to(link: Mapping[str, Any], bus_id: str | None) -> bool:
    """Whether a link is active and leads to that GPU, or to a switch, which connects all."""
    return link["active"] and (link["remote_kind"] == "switch" or link.get("remote_bus_id") == bus_id)


def node_errors(root: Path) -> dict[str, str]:
    """The device nodes that cannot be opened, and the system's error name.

    A container's control group may forbid what a node's mode allows, which only opening it reveals. This is done here
    and not in kdoctor itself, because the call may hang in a faulty driver.
    """
    found: dict[str, str] = {}
    for path in sorted((root / "dev").glob("nvidia*")):
        if path.is_dir():
            continue
        try:
            os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
        except OSError as error:
            found[f"/dev/{path.name}"] = errno.errorcode.get(error.errno or 0, str(error))
    return found
