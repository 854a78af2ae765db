import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers import facts as healthy
from helpers.cases import cases
from helpers.machine import context
from kdoctor.facts import FactGroup, Facts, Gpus, Host, Packages, PciDevices, Unavailable
from kdoctor.probes.builtin import PROBES
from kdoctor.probes.collector import Collection, collect_facts
from kdoctor.probes.probe import Probe
from kdoctor.probes.process.child import ChildrenEnded

HOST = Host(os="Linux")


def probe(name: str, collect: Callable[[Any], Any], *provides: type[FactGroup], deadline_s: float = 20) -> Probe:
    return Probe(name=name, provides=provides or (Host,), collect=collect, deadline_s=deadline_s)


def unavailable(facts: Facts, group: type[FactGroup]) -> str:
    """Why the group is unavailable."""
    found = facts[group]
    assert isinstance(found, Unavailable)
    return found.unavailable


def raising(error: BaseException) -> Callable[[Any], Any]:
    def collect(_: Any) -> Any:
        raise error

    return collect


def test_facts_of_all_probes_are_collected(tmp_path: Path) -> None:
    probes = [probe("a", lambda _: {Host: HOST}), probe("b", lambda _: {Gpus: healthy.gpus()}, Gpus)]
    assert collect_facts(probes, context(tmp_path)) == {Host: HOST, Gpus: healthy.gpus()}


@cases(
    (raising(RuntimeError("no luck")), r"\bp probe .*RuntimeError: no luck"),
    (raising(SystemExit(3)), r"\bp probe .*SystemExit: 3"),
    (raising(ChildrenEnded()), r"\bp probe .*interrupted"),
    (lambda _: None, r"\bp probe .*NoneType"),
    (lambda _: [HOST], r"\bp probe .*list"),
    (lambda _: {}, r"\bp probe .*\bhost$"),
    (lambda _: {Host: "Linux"}, r"\bp probe .*\bhost: 'Linux'"),
    (lambda _: {Host: Host(os=3)}, r"\bp probe .*Host.os: expected a string, found the number 3"),  # type: ignore[arg-type]
    (lambda _: {Host: Unavailable(unavailable="closed today")}, "^closed today$"),
)
def test_failing_probe_makes_its_group_unavailable(tmp_path: Path, collect: Callable[[Any], Any], reason: str) -> None:
    facts = collect_facts([probe("p", collect)], context(tmp_path))
    assert set(facts) == {Host}
    assert re.search(reason, unavailable(facts, Host))


def test_missing_group_does_not_affect_others(tmp_path: Path) -> None:
    facts = collect_facts([probe("p", lambda _: {Host: HOST}, Host, Packages)], context(tmp_path))
    assert facts[Host] == HOST
    assert "packages" in unavailable(facts, Packages)


def test_unexpected_group_is_ignored(tmp_path: Path) -> None:
    facts = collect_facts([probe("p", lambda _: {Host: HOST, Gpus: healthy.gpus()})], context(tmp_path))
    assert set(facts) == {Host}


def test_hanging_probe_does_not_affect_others(tmp_path: Path) -> None:
    release = threading.Event()
    try:
        probes = [probe("slow", lambda _: release.wait(60), deadline_s=0.2), probe("b", lambda _: {Gpus: 1}, Gpus)]
        started = time.monotonic()
        facts = collect_facts(probes, context(tmp_path))
        assert time.monotonic() - started < 10
    finally:
        release.set()
    assert "0.2 s" in unavailable(facts, Host)


def test_late_facts_are_ignored(tmp_path: Path) -> None:
    def late(_: Any) -> Any:
        time.sleep(0.3)
        return {Host: HOST}

    collection = Collection([probe("late", late, deadline_s=0.1), probe("b", lambda _: time.sleep(0.6), Gpus)])
    collection.start(context(tmp_path))
    collection.wait()
    assert "0.1 s" in unavailable(collection.facts, Host)


def test_probes_run_at_once(tmp_path: Path) -> None:
    barrier = threading.Barrier(3, timeout=20)

    def collect(_: Any) -> Any:
        barrier.wait()
        return {Host: HOST}

    assert collect_facts([probe(name, collect) for name in "abc"], context(tmp_path)) == {Host: HOST}


def test_all_probes_are_pending_before_the_run() -> None:
    collection = Collection([probe("p", lambda _: {Host: HOST})])
    assert collection.pending == ("p",)
    assert "p probe" in unavailable(collection.facts, Host)


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_facts_survive_ctrl_c(tmp_path: Path) -> None:
    release = threading.Event()
    probes = [probe("quick", lambda _: {Host: HOST}), probe("slow", lambda _: release.wait(60), PciDevices)]
    collection = Collection(probes)

    def interrupt() -> None:
        while collection.pending != ("slow",):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    try:
        collection.start(context(tmp_path))
        with pytest.raises(KeyboardInterrupt):
            collection.wait()
    finally:
        release.set()
    assert collection.facts[Host] == HOST
    assert "slow probe" in unavailable(collection.facts, PciDevices)
    assert collection.pending == ("slow",)


def test_builtin_probes_provide_each_group_once() -> None:
    groups = [group for probe in PROBES for group in probe.provides]
    assert len(groups) == len(set(groups))
    assert len({probe.name for probe in PROBES}) == len(PROBES)


def test_ended_children_make_groups_unavailable(tmp_path: Path) -> None:
    ended = context(tmp_path)
    ended.children.end_all()
    facts = collect_facts(PROBES, ended)
    assert "interpreter probe" in unavailable(facts, Packages)
    assert "nvml probe" in unavailable(facts, Gpus)


def test_kdoctor_never_imports_the_jobs_packages() -> None:
    code = """if True:
        import sys
        import kdoctor.probes.builtin, kdoctor.probes.collector, kdoctor.probes.target, kdoctor.snapshot.document
        print(sorted({"tensorflow", "keras", "numpy", "jax", "torch", "pynvml"} & set(sys.modules)))
        import kdoctor.probes.builtin
    """
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert answer.stdout == "[]\n"
