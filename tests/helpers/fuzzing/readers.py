"""What kdoctor reads from others: each reader with documents to start from, and a run of it on any bytes."""

import contextlib
import json
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import resources
from pathlib import Path
from random import Random

import yaml

from helpers.fuzzing.dumps import DUMPS
from helpers.fuzzing.jobs import JOBS
from helpers.fuzzing.machines import MACHINES
from helpers.fuzzing.mutation import mutated, mutated_json
from helpers.fuzzing.using import REPOSITORY, TODAY, Reader, catalog, refuse_crashes, use
from helpers.locks import lock, node_facts
from helpers.reports import gpu_report
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.plan import plan
from kdoctor.checklist.text import plain_text, resolved_text
from kdoctor.engine.judge import judge
from kdoctor.errors import UsageError
from kdoctor.failures.known import load_failures
from kdoctor.failures.match import find_matches, near_misses
from kdoctor.history import read as history
from kdoctor.history.last_passing import Series, keep_lock, last_passing
from kdoctor.history.store import add, opened, pack, writing
from kdoctor.lock.document import Lock, text_of
from kdoctor.lock.document import loads as read_lock
from kdoctor.lock.facts import recorded_facts
from kdoctor.matrix.load import loads as read_matrix
from kdoctor.probes import interpreter, libraries
from kdoctor.probes.nvml import probe as nvml
from kdoctor.probes.process.child import ChildEnd
from kdoctor.probes.process.readers import RecordReader
from kdoctor.report.formats import render
from kdoctor.rollback.document import RollbackPlan
from kdoctor.rollback.installers import read_installation
from kdoctor.rollback.plan import plan_rollback
from kdoctor.rollback.render import as_script, as_text
from kdoctor.snapshot.document import Snapshot, dumps, loads
from kdoctor.snapshot.redaction import Redaction
from kdoctor.testing import healthy_node
from kdoctor.text.canvas import PLAIN
from kdoctor.yamldoc.source import YamlSourceError, read_yaml
from kdoctor_lint import engine
from kdoctor_lint.fixes.apply import fix_files
from kdoctor_lint.registry import RULES
from kdoctor_lint.report.formats import FORMATS as LINT_FORMATS
from kdoctor_lint.settings import Settings
from kdoctor_recordings.importer import import_files


def _checklist(data: bytes, _: Path) -> None:
    found = load_checklist("fuzz.yaml", catalog(), read=lambda path: data)
    plain_text(found)
    resolved_text(found)
    checks = plan(found, catalog(), smoke=False)
    refuse_crashes(judge(checks, healthy_node(), found.rules(today=TODAY)))


def _lock(data: bytes, _: Path) -> None:
    found = read_lock(data, "fuzz.lock.yaml")
    facts = node_facts()
    made = plan_rollback(found, recorded_facts(facts), read_installation(facts), "fuzz.lock.yaml", "job")
    for form in (as_text, RollbackPlan.to_json, as_script):
        form(made)


def _matrix(data: bytes, _: Path) -> None:
    read_matrix(data)


def _snapshot(data: bytes, _: Path) -> None:
    facts = loads(data, catalog().fact_groups).facts
    if zlib.crc32(data) % 10 == 0:  # judging takes longer than reading
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
    if suffix == ".ipynb":
        fix_files([str(path)], RULES, Settings(), unsafe=True)


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
    facts = json.loads(dumps(Snapshot.now(healthy_node()), Redaction(home="/home/ada", user="ada")))["facts"]
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


def _scripts() -> Iterator[bytes]:
    for path in sorted((REPOSITORY / "tests/kdoctor_lint/cases").glob("*.txt")):
        for case in path.read_text().split("\n### ")[:6]:
            yield case.partition("\n")[2].encode()


def _notebooks() -> Iterator[bytes]:
    magic = {"cell_type": "code", "source": "%%writefile a.py\nimport tensorflow as tf\n!ls\n%time x = 1\n"}
    removed = "from tensorflow import keras\nkeras.optimizers.Adam(lr=0.1)\n"
    for text, others in [(removed, []), *((text.decode(), [magic]) for text in list(_scripts())[::7])]:
        cell = {"cell_type": "code", "source": text.splitlines(keepends=True), "metadata": {}, "outputs": []}
        metadata = {"kernelspec": {"language": "python"}}
        yield json.dumps({"cells": [*others, cell], "metadata": metadata, "nbformat": 4}).encode()


def _checklists() -> Sequence[bytes]:
    return [
        path.read_bytes() for path in (*catalog().checklists.values(), *(REPOSITORY / "docs/examples").glob("*.yaml"))
    ]


def _encoded(text: str) -> Sequence[bytes]:
    return [text.encode()]


@cache
def _small_matrix() -> Sequence[bytes]:
    """The shipped matrix with the last two rows of its tables, so that many changes can be tried."""
    file = resources.files("kdoctor_checklists.matrices").joinpath("version-matrix.yaml")
    found = yaml.safe_load(file.read_text(encoding="utf-8"))
    shorter = {**found, **{key: found[key][-2:] for key in ("tensorflow", "jax", "known_bad", "gpus") if key in found}}
    return [yaml.safe_dump(shorter, sort_keys=False).encode()]


@cache
def _snapshots() -> Sequence[bytes]:
    """The machine of the tests with two of its GPUs."""
    found = json.loads(resources.files("kdoctor.testing").joinpath("h100-node.json").read_text(encoding="utf-8"))
    gpus = found["facts"]["gpus"]
    gpus["devices"] = gpus["devices"][:2]
    gpus["pairs"] = [pair for pair in gpus["pairs"] if {pair["first"], pair["second"]} <= {0, 1}]
    return [json.dumps(found).encode()]


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
    "script": Reader(
        seeds=lambda: [*_scripts(), b"# -*- coding: utf-8 -*-\n" + next(_scripts())], run=partial(_lint, ".py")
    ),
    "notebook": Reader(seeds=lambda: list(_notebooks()), run=partial(_lint, ".ipynb"), mutate=mutated_json),
    "history": Reader(seeds=_history_seed, run=_history),
    "lines of children": Reader(seeds=_child_seeds, run=_children),
    "error message": Reader(
        seeds=lambda: [b"ValueError: Unable to determine the device handle", *list(_scripts())[:5]], run=_message
    ),
    **JOBS,
    **MACHINES,
    **{name: Reader(seeds=partial(_encoded, text), run=_import) for name, text in DUMPS.items()},
}
"""Every reader. The names of imports are those of the format."""
