"""Runs all probes at once, each with a deadline, and never fails itself."""

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from kdoctor.documents import fitted
from kdoctor.errors import described
from kdoctor.facts import FactGroup, Facts, Unavailable
from kdoctor.facts.plausible import plausible
from kdoctor.probes.probe import Context, Probe
from kdoctor.probes.process.child import ChildrenEnded


class Collection:
    """One run of the probes. The facts collected so far are available at any time, also after Ctrl-C."""

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._probes = {probe.name: probe for probe in probes}
        self._results: queue.SimpleQueue[tuple[str, Facts]] = queue.SimpleQueue()
        self._facts: dict[type[FactGroup], FactGroup | Unavailable] = {}
        self._deadlines = dict.fromkeys(self._probes, 0.0)

    @property
    def pending(self) -> tuple[str, ...]:
        """Names of the probes that are still running."""
        return tuple(self._deadlines)

    @property
    def facts(self) -> Facts:
        """The facts collected so far; the groups of running probes are unavailable."""
        facts = dict(self._facts)
        for name in self.pending:
            for group in self._probes[name].provides:
                facts.setdefault(group, Unavailable(unavailable=f"the {name} probe had not finished"))
        return facts

    def start(self, context: Context) -> None:
        """Start every probe in a daemon thread, which does not keep kdoctor from exiting. To be called once."""
        for name, probe in self._probes.items():
            self._deadlines[name] = time.monotonic() + probe.deadline_s
            thread = threading.Thread(target=self._run, args=(probe, context), name=f"probe {name}", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # a limit of processes or memory
                self._end(name, _nothing(probe, f"could not be started: {error}"))

    def wait(self) -> None:
        """Return when every probe has ended or passed its deadline.

        The call may be interrupted (``KeyboardInterrupt``); :attr:`facts` has what was collected by then.
        """
        while self._deadlines:
            remaining = min(self._deadlines.values()) - time.monotonic()
            try:
                name, facts = self._results.get(timeout=max(0.0, remaining))
            except queue.Empty:
                self._give_up()
            else:
                self._end(name, facts)

    def _run(self, probe: Probe, context: Context) -> None:
        self._results.put((probe.name, _collect(probe, context)))

    def _give_up(self) -> None:
        now = time.monotonic()
        for name in [name for name, deadline in self._deadlines.items() if deadline <= now]:
            probe = self._probes[name]
            self._end(name, _nothing(probe, f"did not finish within {probe.deadline_s:g} s"))

    def _end(self, name: str, facts: Facts) -> None:
        if self._deadlines.pop(name, None) is None:
            return  # too late: its groups were already declared unavailable
        for group, value in facts.items():
            self._facts.setdefault(group, value)


def begin_facts(probes: Sequence[Probe], context: Context) -> Callable[[], Facts]:
    """Start all probes at once. What is returned waits for them, as :func:`collect_facts` does."""
    collection = Collection(probes)
    collection.start(context)

    def wait() -> Facts:
        collection.wait()
        return collection.facts

    return wait


def collect_facts(probes: Sequence[Probe], context: Context) -> Facts:
    """Run all probes at once. The groups of a probe that hangs, crashes or returns invalid data are unavailable."""
    return begin_facts(probes, context)()


def _collect(probe: Probe, context: Context) -> Facts:
    """Every group that the probe provides, or why it is unavailable; never raises."""
    try:
        collected: object = probe.collect(context)
    except ChildrenEnded:
        return _nothing(probe, "was interrupted")
    except BaseException as error:  # noqa: BLE001 - a third party's probe may even call sys.exit
        return _nothing(probe, f"failed: {described(error, probe.collect)}")
    if not isinstance(collected, Mapping):
        return _nothing(probe, f"returned invalid data: a {type(collected).__name__}")
    return {group: _checked(probe, group, collected.get(group)) for group in probe.provides}


def _checked(probe: Probe, group: type[FactGroup], facts: object) -> FactGroup | Unavailable:
    if isinstance(facts, Unavailable):
        return facts
    if facts is None:
        return Unavailable(unavailable=f"the {probe.name} probe did not return {group.group}")
    found = f"{facts!r:.80}"
    if isinstance(facts, group):
        try:
            return plausible(fitted(facts))
        except TypeError as error:
            found = str(error)
    return Unavailable(unavailable=f"the {probe.name} probe returned invalid data for {group.group}: {found}")


def _nothing(probe: Probe, why: str) -> Facts:
    return {group: Unavailable(unavailable=f"the {probe.name} probe {why}") for group in probe.provides}
