from __future__ import annotations

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
from helpers.machine import context
from kdoctor.facts import FactGroup, Gpus, Host, Packages, PciDevices, Unavailable
from kdoctor.probes.builtin import PROBES
from kdoctor.probes.collector import Collection, collect_facts
from kdoctor.probes.probe import Probe
from kdoctor.probes.process.child import ChildrenEnded

HOST = Host(os="Linux")


def probe(name: str, collect: Callable[[Any], Any], *provides: type[FactGroup], deadline_s: float = 20) -> Probe:
    return Probe(name=name, provides=provides or (Host,), collect=collect, deadline_s=deadline_s)


def raising(error: BaseException) -> Callable[[Any], Any]:
    def collect(_: Any) -> Any:
        raise error

    return collect


def test_facts_and_progress(tmp_path: Path) -> None:
    done: list[str] = []
    probes = [probe("a", lambda _: {Host: HOST}), probe("b", lambda _: {Gpus: healthy.gpus()}, Gpus)]
    assert collect_facts(probes, context(tmp_path), done.append) == {Host: HOST, Gpus: healthy.gpus()}
    assert sorted(done) == ["a", "b"]


@pytest.mark.parametrize(
    ("collect", "reason"),
    [
        (raising(RuntimeError("no luck")), "the p probe failed: RuntimeError: no luck"),
        (raising(SystemExit(3)), "the p probe failed: SystemExit: 3"),
        (raising(ChildrenEnded()), "the p probe was interrupted"),
        (lambda _: None, "the p probe returned rubbish: a NoneType"),
        (lambda _: [HOST], "the p probe returned rubbish: a list"),
        (lambda _: {}, "the p probe said nothing about host"),
        (lambda _: {Host: "Linux"}, "the p probe returned rubbish about host: 'Linux'"),
        (lambda _: {Host: Unavailable(unavailable="closed today")}, "closed today"),
    ],
)
def test_what_goes_wrong_makes_the_group_unavailable(
    tmp_path: Path, collect: Callable[[Any], Any], reason: str
) -> None:
    assert collect_facts([probe("p", collect)], context(tmp_path)) == {Host: Unavailable(unavailable=reason)}


def test_a_probe_that_forgets_a_group_keeps_the_others(tmp_path: Path) -> None:
    facts = collect_facts([probe("p", lambda _: {Host: HOST}, Host, Packages)], context(tmp_path))
    assert facts[Host] == HOST
    assert facts[Packages] == Unavailable(unavailable="the p probe said nothing about packages")


def test_a_group_that_was_not_promised_is_left_out(tmp_path: Path) -> None:
    facts = collect_facts([probe("p", lambda _: {Host: HOST, Gpus: healthy.gpus()})], context(tmp_path))
    assert set(facts) == {Host}


def test_a_hang_costs_its_own_group_only(tmp_path: Path) -> None:
    release = threading.Event()
    try:
        probes = [probe("slow", lambda _: release.wait(60), deadline_s=0.2), probe("b", lambda _: {Gpus: 1}, Gpus)]
        started = time.monotonic()
        facts = collect_facts(probes, context(tmp_path))
        assert time.monotonic() - started < 10
    finally:
        release.set()
    assert facts[Host] == Unavailable(unavailable="the slow probe did not finish within 0.2 s")


def test_an_answer_after_the_deadline_does_not_count(tmp_path: Path) -> None:
    def late(_: Any) -> Any:
        time.sleep(0.3)
        return {Host: HOST}

    collection = Collection([probe("late", late, deadline_s=0.1), probe("b", lambda _: time.sleep(0.6), Gpus)])
    collection.run(context(tmp_path))
    assert collection.facts[Host] == Unavailable(unavailable="the late probe did not finish within 0.1 s")


def test_probes_run_at_once(tmp_path: Path) -> None:
    barrier = threading.Barrier(3, timeout=20)

    def collect(_: Any) -> Any:
        barrier.wait()
        return {Host: HOST}

    assert collect_facts([probe(name, collect) for name in "abc"], context(tmp_path)) == {Host: HOST}


def test_before_the_run_everything_is_pending() -> None:
    collection = Collection([probe("p", lambda _: {Host: HOST})])
    assert collection.pending == ("p",)
    assert collection.facts == {Host: Unavailable(unavailable="the p probe had not finished")}


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_leaves_what_is_known(tmp_path: Path) -> None:
    release = threading.Event()
    probes = [probe("quick", lambda _: {Host: HOST}), probe("slow", lambda _: release.wait(60), PciDevices)]
    collection = Collection(probes)

    def interrupt(name: str) -> None:
        assert name == "quick"
        signal.raise_signal(signal.SIGINT)

    try:
        with pytest.raises(KeyboardInterrupt):
            collection.run(context(tmp_path), interrupt)
    finally:
        release.set()
    assert collection.facts == {
        Host: HOST,
        PciDevices: Unavailable(unavailable="the slow probe had not finished"),
    }
    assert collection.pending == ("slow",)


def test_the_built_in_probes_provide_each_group_once() -> None:
    groups = [group for probe in PROBES for group in probe.provides]
    assert len(groups) == len(set(groups))
    assert len({probe.name for probe in PROBES}) == len(PROBES)


def test_ended_children_make_groups_unavailable_not_errors(tmp_path: Path) -> None:
    ended = context(tmp_path)
    ended.children.end_all()
    facts = collect_facts(PROBES, ended)
    assert facts[Packages] == Unavailable(unavailable="the interpreter probe was interrupted")
    assert facts[Gpus] == Unavailable(unavailable="the nvml probe was interrupted")


def test_kdoctor_itself_never_loads_what_the_job_loads() -> None:
    code = """if True:
        import sys
        import kdoctor.probes.builtin, kdoctor.probes.collector, kdoctor.probes.target, kdoctor.snapshot.document
        print(sorted({"tensorflow", "keras", "numpy", "jax", "torch", "pynvml"} & set(sys.modules)))
        import kdoctor.probes.builtin
    """
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert answer.stdout == "[]\n"
