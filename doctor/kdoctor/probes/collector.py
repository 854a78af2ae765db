"""Runs all probes at once, each with its deadline, and never fails itself."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from kdoctor.facts import FactGroup, Unavailable
from kdoctor.probes.probe import Collected, Context, Probe
from kdoctor.probes.process.child import ChildrenEnded

OnDone = Callable[[str], None]
"""Takes the name of a probe that has ended."""


class Collection:
    """One run of the probes. What is known so far can be had at any time, also after Ctrl-C."""

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._probes = {probe.name: probe for probe in probes}
        self._results: queue.SimpleQueue[tuple[str, Collected]] = queue.SimpleQueue()
        self._facts: dict[type[FactGroup], FactGroup | Unavailable] = {}
        self._deadlines = dict.fromkeys(self._probes, 0.0)

    @property
    def pending(self) -> tuple[str, ...]:
        """Names of the probes that have not ended yet."""
        return tuple(self._deadlines)

    @property
    def facts(self) -> dict[type[FactGroup], FactGroup | Unavailable]:
        """The groups so far; those of pending probes are unavailable."""
        facts = dict(self._facts)
        for name in self.pending:
            for group in self._probes[name].provides:
                facts.setdefault(group, Unavailable(unavailable=f"the {name} probe had not finished"))
        return facts

    def run(self, context: Context, on_done: OnDone | None = None) -> None:
        """Run every probe at once; return when each has ended or is past its deadline. To be called once."""
        self.start(context)
        self.wait(on_done)

    def start(self, context: Context) -> None:
        """Start every probe in a thread of its own, which does not keep kdoctor from ending. To be called once."""
        for name, probe in self._probes.items():
            self._deadlines[name] = time.monotonic() + probe.deadline_s
            thread = threading.Thread(target=self._run, args=(probe, context), name=f"probe {name}", daemon=True)
            thread.start()

    def wait(self, on_done: OnDone | None = None) -> None:
        """Return when every probe has ended or is past its deadline. ``on_done`` is called in the caller's thread.

        The call may be interrupted (``KeyboardInterrupt``); what is known by then stands in :attr:`facts`.
        """
        while self._deadlines:
            remaining = min(self._deadlines.values()) - time.monotonic()
            try:
                name, collected = self._results.get(timeout=max(0.0, remaining))
            except queue.Empty:
                self._give_up(on_done)
            else:
                self._end(name, collected, on_done)

    def _run(self, probe: Probe, context: Context) -> None:
        self._results.put((probe.name, _collect(probe, context)))

    def _give_up(self, on_done: OnDone | None) -> None:
        now = time.monotonic()
        for name in [name for name, deadline in self._deadlines.items() if deadline <= now]:
            probe = self._probes[name]
            self._end(name, _nothing(probe, f"did not finish within {probe.deadline_s:g} s"), on_done)

    def _end(self, name: str, collected: Collected, on_done: OnDone | None) -> None:
        if self._deadlines.pop(name, None) is None:
            return  # it answers after it was given up: its groups are judged unavailable, and stay so
        for group, facts in collected.items():
            self._facts.setdefault(group, facts)
        if on_done:
            on_done(name)


def collect_facts(
    probes: Sequence[Probe], context: Context, on_done: OnDone | None = None
) -> dict[type[FactGroup], FactGroup | Unavailable]:
    """Run all probes at once. A probe that hangs, crashes or returns rubbish makes its groups unavailable."""
    collection = Collection(probes)
    collection.run(context, on_done)
    return collection.facts


def _collect(probe: Probe, context: Context) -> Collected:
    """The groups that the probe provides, each of its type or unavailable; it never raises."""
    try:
        collected: object = probe.collect(context)
    except ChildrenEnded:
        return _nothing(probe, "was interrupted")
    except BaseException as error:  # noqa: BLE001 - a probe may be anybody's, and may call sys.exit
        return _nothing(probe, f"failed: {type(error).__name__}: {error}")
    if not isinstance(collected, Mapping):
        return _nothing(probe, f"returned rubbish: a {type(collected).__name__}")
    return {group: _checked(probe, group, collected.get(group)) for group in probe.provides}


def _checked(probe: Probe, group: type[FactGroup], facts: object) -> FactGroup | Unavailable:
    if isinstance(facts, (group, Unavailable)):
        return facts
    if facts is None:
        return Unavailable(unavailable=f"the {probe.name} probe said nothing about {group.group}")
    return Unavailable(unavailable=f"the {probe.name} probe returned rubbish about {group.group}: {facts!r:.80}")


def _nothing(probe: Probe, why: str) -> dict[type[FactGroup], FactGroup | Unavailable]:
    return {group: Unavailable(unavailable=f"the {probe.name} probe {why}") for group in probe.provides}
