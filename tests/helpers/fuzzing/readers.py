"""What kdoctor reads from others: each reader with documents to start from, and a run of it on any bytes."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import resources
from pathlib import Path
from random import Random

from helpers.dumps import LOG, LSPCI, NVLINK, TABLE, TOPOLOGY, query, xml
from helpers.fuzzing.mutation import mutated, mutated_json
from helpers.locks import lock, node_facts
from helpers.reports import gpu_report
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.plan import plan
from kdoctor.checklist.text import plain_text, resolved_text
from kdoctor.engine.catalog import Catalog, load_catalog
from kdoctor.engine.judge import judge
from kdoctor.engine.report import Result
from kdoctor.errors import UsageError
from kdoctor.facts import Facts, Gpus, Host, PciDevices
from kdoctor.failures.known import load_failures
from kdoctor.failures.match import find_matches, near_misses
from kdoctor.history import read as history
from kdoctor.history.last_passing import Series, keep_lock, last_passing
from kdoctor.history.store import add, opened, pack, writing
from kdoctor.lock.document import Lock, text_of
from kdoctor.lock.document import loads as read_lock
from kdoctor.lock.facts import recorded_facts
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.load import loads as read_matrix
from kdoctor.probes import interpreter, libraries
from kdoctor.probes.nvml import probe as nvml
from kdoctor.probes.process.child import ChildEnd
from kdoctor.probes.process.readers import RecordReader
from kdoctor.report.formats import FORMATS, render
from kdoctor.rollback.installers import read_installation
from kdoctor.rollback.plan import plan_rollback
from kdoctor.rollback.render import as_json, as_script, as_text
from kdoctor.run.assemble import build_report
from kdoctor.run.plan import Plan
from kdoctor.run.session import Collected
from kdoctor.snapshot.document import Snapshot, dumps, loads
from kdoctor.snapshot.imports.importer import import_files
from kdoctor.snapshot.redaction import Redaction
from kdoctor.text.canvas import PLAIN
from kdoctor.topology.advice import advise
from kdoctor.topology.choice import choose
from kdoctor.topology.json import document
from kdoctor.topology.layout import read_layout
from kdoctor.topology.render import write_topology
from kdoctor.topology.tree import grow
from kdoctor.yamldoc.source import YamlSourceError, read_yaml
from kdoctor_lint import engine
from kdoctor_lint.report.formats import FORMATS as LINT_FORMATS

TODAY = dt.date(2026, 11, 1)
NOW = dt.datetime(2026, 11, 1, tzinfo=dt.timezone.utc)
REPOSITORY = Path(__file__).parents[3]


@dataclass(frozen=True, kw_only=True)
class Reader:
    """One kind of input."""

    seeds: Callable[[], Sequence[bytes]]
    run: Callable[[bytes, Path], None]
    """Reads the bytes, and uses what they mean. The folder is for files. UsageError is an answer."""
    mutate: Callable[[bytes, Random], bytes] = mutated


@cache
def catalog() -> Catalog:
    return load_catalog()


@cache
def node() -> Facts:
    text = resources.files("kdoctor.testing").joinpath("h100-node.json").read_text(encoding="utf-8")
    return loads(text, catalog().fact_groups).facts


@cache
def shipped() -> Plan:
    """The largest shipped checklist, with every installed check."""
    found = load_checklist("multi-gpu-keras", catalog())
    return Plan(
        checklist=found, checks=plan(found, catalog()), rules=replace(found.rules(today=TODAY), matrix=load_matrix())
    )


class CheckCrashedError(Exception):
    """A check raised an exception, which a run reports as unknown."""


def refuse_crashes(results: Sequence[Result]) -> None:
    """Raise CheckCrashedError for the first check that raised an exception."""
    for result in results:
        for unjudged in result.unjudged:
            if unjudged.reason.startswith("the check raised"):
                raise CheckCrashedError(f"{result.id}: {unjudged.reason:.80}")


def use(facts: Facts) -> None:
    """Everything that kdoctor does with the facts of a machine, except for training on it."""
    collected = Collected(facts=facts, target="a snapshot", started_at=NOW, duration_s=1.0, from_snapshot=True)
    report = build_report(collected, shipped())
    refuse_crashes(report.results)
    for name in FORMATS:
        render(report, name)
    text = dumps(Snapshot.now(facts), Redaction(home="/home/ada", user="ada"))
    assert loads(text, catalog().fact_groups).facts.keys() == facts.keys()
    found = plan_rollback(lock(), recorded_facts(facts), read_installation(facts), "job.lock.yaml", "job")
    for form in (as_text, as_json, as_script):
        form(found)
    gpus, pci, host = facts.get(Gpus), facts.get(PciDevices), facts.get(Host)
    if isinstance(gpus, Gpus) and gpus.devices:
        layout = read_layout(gpus, pci if isinstance(pci, PciDevices) else None)
        sizes = [size for size in (1, 2) if size <= len(layout.usable)]
        choices = [(choice, advise(layout, choice)) for choice in (choose(layout, size) for size in sizes)]
        tree = grow(layout, host if isinstance(host, Host) else None)
        write_topology(layout, tree, choices)
        document(layout, tree, choices).to_json()


def _checklist(data: bytes, _: Path) -> None:
    found = load_checklist("fuzz.yaml", catalog(), read=lambda path: data)
    plain_text(found)
    resolved_text(found)
    checks = plan(found, catalog(), smoke=False)
    refuse_crashes(judge(checks, node(), found.rules(today=TODAY)))


def _lock(data: bytes, _: Path) -> None:
    found = read_lock(data, "fuzz.lock.yaml")
    facts = node_facts()
    made = plan_rollback(found, recorded_facts(facts), read_installation(facts), "fuzz.lock.yaml", "job")
    for form in (as_text, as_json, as_script):
        form(made)


def _matrix(data: bytes, _: Path) -> None:
    read_matrix(data)


def _snapshot(data: bytes, _: Path) -> None:
    facts = loads(data, catalog().fact_groups).facts
    if zlib.crc32(data) % 2 == 0:  # judging takes longer than reading
        use(facts)


def _import(data: bytes, folder: Path) -> None:
    path = folder / "dump"
    path.write_bytes(data)
    facts = import_files([path]).facts
    if zlib.crc32(data) % 200 == 0:  # judging takes longer than reading
        use(facts)


def _lint(suffix: str, data: bytes, folder: Path) -> None:
    path = folder / f"train{suffix}"
    path.write_bytes(data)
    report = engine.lint([str(path)])
    for form in LINT_FORMATS.values():
        form(report, PLAIN)


def _history(data: bytes, folder: Path) -> None:
    path = folder / "history.sqlite"
    for name in ("history.sqlite", "history.sqlite-wal", "history.sqlite-shm", "history.sqlite-journal"):
        (folder / name).unlink(missing_ok=True)
    path.write_bytes(data)
    series = Series(host="node", checklist="job", target="/opt/job/bin/python")
    with opened(path, create=False) as connection:
        found = history.runs(connection, 20, None)
        history.flaky(connection)
        if found:
            history.changes(connection, found[0].id)
            history.trends(connection, found[-1], 20)
    for ask in (
        lambda connection: history.report_of(connection, 1),
        lambda connection: list(history.export(connection)),
        lambda connection: last_passing(connection, series),
    ):
        with contextlib.suppress(UsageError), opened(path, create=False) as connection:
            ask(connection)


@cache
def _history_seed() -> tuple[bytes, ...]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.sqlite"
        report = pack(render(gpu_report(), "json"))
        row = {
            "started_at": "2026-01-01T00:00:00+00:00", "duration_s": 1.0, "host": "node", "checklist": "job",
            "checklist_version": 1, "target": "/opt/job/bin/python", "scope": "", "kdoctor": "0.1", "conclusion": "pass",
            "exit_code": 0, "reason": "", "passed": 1, "failed": 0, "skipped": 0, "unknown": 0,
        }  # fmt: skip
        with opened(path, create=True) as connection, writing(connection):
            for status in ("pass", "fail", "pass"):
                number = add(connection, row, report, {"gpu.free": status}, {"smoke.baseline/mirrored step_s": 0.1})
                keep_lock(connection, number, lock(checklist="job"))
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
        return (path.read_bytes(),)


def _children(data: bytes, _: Path) -> None:
    reader = RecordReader(None, None, keep=True)
    reader._take(data)
    end = ChildEnd(
        exit_code=1, signal=None, timed_out=False, records=tuple(reader.records), chatter=reader.chatter,
        stderr=data[-200:].decode("utf-8", "replace"), seconds=1.0,
    )  # fmt: skip
    interpreter.read_records(end)
    libraries.read_end(end)
    nvml.read_end(end)


def _child_seeds() -> Sequence[bytes]:
    facts = json.loads(dumps(Snapshot.now(node()), Redaction(home="/home/ada", user="ada")))["facts"]
    groups = ("target", "packages", "tensorflow", "keras")
    environment = [{"group": name, "facts": facts[name]} for name in groups if name in facts]
    gpus = [
        {"lane": 0, "at": "nvmlInit"},
        {"at": None},
        {"facts": {**facts["gpus"], "devices": facts["gpus"]["devices"][:1]}},
    ]
    shared = [{"facts": facts["libraries"]}]
    return [
        b"warning: x\n" + b"".join(b"\x1e" + json.dumps(record).encode() + b"\n" for record in records)
        for records in (environment, gpus, shared)
    ]


failures = cache(load_failures)


def _message(data: bytes, _: Path) -> None:
    text = data.decode("utf-8", "replace")
    find_matches(text, failures())
    near_misses(text, failures())


DCGM = {
    "DCGM Diagnostic": {
        "test_categories": [
            {"category": "Hardware", "tests": [{"name": "pcie", "results": [{"gpu_ids": "0,1", "status": "Fail", "warnings": [{"warning": "x", "error_id": 83}]}]}]},
            {"category": "x", "tests": [{"name": "y", "results": [{"entity_group": "GPU", "entity_group_id": 1, "entity_id": 2, "status": "Warn"}], "test_summary": {"status": "Warn"}}]},
        ]
    }
}  # fmt: skip
NCCL = """\
<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:15:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:19:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90" rank="0" gdr="1"><nvlink target="0000:5d:00.0" count="18" tclass="0x030200"/></gpu>
      </pci>
    </pci>
  </cpu>
</system>
"""
LSTOPO = """\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="3.0">
  <object type="Machine" nodeset="0x00000003">
    <object type="Package" os_index="1" nodeset="0x00000002">
      <object type="Bridge" bridge_type="0-1">
        <object type="PCIDev" pci_busid="0000:3b:00.0" pci_type="0302 [10de:20b0] [10de:134f] a1 00">
          <object type="OSDev" name="nvml0" osdev_type="12"><info name="GPUModel" value="NVIDIA Test 40GB"/></object>
        </object>
      </object>
    </object>
  </object>
</topology>
"""
FABRIC = (
    "[Feb 27 2025 15:10:02] [ERROR] [tid 12727] detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id "
    "00000000:86:00.0 physical id 3 port 61\n"
)
CSV = (
    "index, name, pci.bus_id, memory.total [MiB], temperature.gpu, power.draw [W], remapped_rows.failure\n"
    "0, NVIDIA Test 40GB, 00000000:3B:00.0, 40960 MiB, 34, 75.11 W, No\n"
    "1, NVIDIA Test 40GB, 00000000:AF:00.0, 40960 MiB, 35, [N/A], Yes\n"
)
DUMPS: Mapping[str, str] = {
    "nvidia-smi -q": query("3B", "AF"),
    "nvidia-smi -q -x": xml("3B", "AF"),
    "nvidia-smi": TABLE,
    "nvidia-smi topo -m": TOPOLOGY,
    "nvidia-smi topo -p2p": " \tGPU0\tGPU1\t\n GPU0\tX\tGNS\t\n GPU1\tGNS\tX\t\n",
    "nvidia-smi nvlink -s": NVLINK,
    "nvidia-smi --query-gpu": CSV,
    "nvidia-smi's failure": "Unable to determine the device handle for GPU 3: 0000:5E:00.0: Unknown Error\n"
    "Unable to determine the device handle for GPU0000:5F:00.0: GPU is lost. Reboot the system.\n",
    "lspci -vvv": LSPCI,
    "lstopo": LSTOPO,
    "NCCL topology": NCCL,
    "kernel log": LOG,
    "kernel log as JSON": '{"_TRANSPORT": "kernel", "MESSAGE": "NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off '
    'the bus.", "_SOURCE_MONOTONIC_TIMESTAMP": "12345678", "PRIORITY": "3"}\n'
    '{"_TRANSPORT": "kernel", "MESSAGE": [78, 86, 82, 77, 58, 32, 88], "__MONOTONIC_TIMESTAMP": "1"}\n',
    "fabric manager log": FABRIC,
    "dcgmi diag": json.dumps(DCGM, indent=1),
    "NodeVerdict": json.dumps({
        "overall_severity": "CRITICAL",
        "affected_components": [{"category": "xid", "max_severity": "CRITICAL", "check_ids": ["gpu_xid_79"], "entities": ["node"]}],
    }),
    "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.173.02  Tue Jun 23 08:38:17 UTC 2026\n",
}  # fmt: skip


def _scripts() -> Iterator[bytes]:
    for path in sorted((REPOSITORY / "tests/kdoctor_lint/cases").glob("*.txt")):
        for case in path.read_text().split("\n### ")[:6]:
            yield case.partition("\n")[2].encode()


def _notebooks() -> Iterator[bytes]:
    for text in list(_scripts())[::7]:
        cell = {"cell_type": "code", "source": text.decode().splitlines(keepends=True), "metadata": {}, "outputs": []}
        magic = {"cell_type": "code", "source": "%%writefile a.py\nimport tensorflow as tf\n!ls\n%time x = 1\n"}
        yield json.dumps(
            {"cells": [magic, cell], "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4}
        ).encode()


def _checklists() -> Sequence[bytes]:
    return [
        path.read_bytes() for path in (*catalog().checklists.values(), *(REPOSITORY / "docs/examples").glob("*.yaml"))
    ]


def _encoded(text: str) -> Sequence[bytes]:
    return [text.encode()]


def _small_matrix() -> Sequence[bytes]:
    file = resources.files("kdoctor_checklists.matrices").joinpath("version-matrix.yaml")
    return [file.read_bytes()]


def _snapshots() -> Sequence[bytes]:
    return [resources.files("kdoctor.testing").joinpath("h100-node.json").read_bytes()]


def _locks() -> Sequence[bytes]:
    return [text_of(lock()).encode()]


def sealed(data: bytes, random: Random) -> bytes:
    """A lock after changes, with the digest of what it says now: anyone can compute it."""
    changed = mutated(data, random)
    try:
        root = read_yaml(changed, "lock").root.data
        root.pop("digest")
        digest = Lock.model_validate(root, strict=False).digest
    except (YamlSourceError, ValueError, AttributeError, KeyError, TypeError):
        return changed
    head = b"".join(line for line in changed.splitlines(keepends=True) if not line.startswith(b"digest:"))
    return head + f"digest: {digest}\n".encode()


READERS: Mapping[str, Reader] = {
    "checklist": Reader(seeds=_checklists, run=_checklist),
    "lock": Reader(seeds=_locks, run=_lock, mutate=sealed),
    "snapshot": Reader(seeds=_snapshots, run=_snapshot, mutate=mutated_json),
    "version matrix": Reader(seeds=_small_matrix, run=_matrix),
    "script": Reader(seeds=lambda: list(_scripts()), run=partial(_lint, ".py")),
    "notebook": Reader(seeds=lambda: list(_notebooks()), run=partial(_lint, ".ipynb"), mutate=mutated_json),
    "history": Reader(seeds=_history_seed, run=_history),
    "lines of children": Reader(seeds=_child_seeds, run=_children),
    "error message": Reader(
        seeds=lambda: [b"ValueError: Unable to determine the device handle", *list(_scripts())[:5]], run=_message
    ),
    **{name: Reader(seeds=partial(_encoded, text), run=_import) for name, text in DUMPS.items()},
}
"""Every reader. The names of imports are those of the format."""
