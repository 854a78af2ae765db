"""Every reader answers any input with what it means or with a UsageError. `make fuzz` tries more of them."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase

from helpers.cases import cases
from helpers.fuzzing import machines
from helpers.fuzzing.readers import READERS
from helpers.fuzzing.using import REPOSITORY, catalog
from helpers.hostile import HOSTILE, SECRETS
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.problems import ChecklistError
from kdoctor.errors import UsageError
from kdoctor.facts import Gpu, Gpus
from kdoctor.history import read as history
from kdoctor.history.store import opened
from kdoctor.snapshot.redaction import Redaction
from kdoctor.text.secrets import mask, mask_variable
from kdoctor.topology.layout import read_layout
from kdoctor.topology.render import write_topology
from kdoctor_recordings import importer

SLOW = {
    "snapshot": 12, "lines of children": 25, "error message": 12, "report of a node": 12,
    "/sys, /proc and /dev": 12, "InfiniBand in /sys": 12, "sosreport": 12, "nvidia-bug-report": 20,
}  # fmt: skip
"""Inputs for readers that use what they read on whole machines."""
FUZZ = int(os.environ.get("KDOCTOR_FUZZ", "0"))
"""Inputs for each other reader in ``make fuzz``, which are new ones in each run; 0 for a fixed set of 40."""
LIMIT_S = 20
"""For one input."""


@pytest.mark.parametrize("name", READERS)
def test_changed_document_is_read_or_refused(
    name: str, tmp_path_factory: pytest.TempPathFactory, record_property: Callable[[str, object], None]
) -> None:
    reader, folder = READERS[name], tmp_path_factory.mktemp("fuzz")
    seeds = list(reader.seeds())
    reader.run(seeds[0], folder)  # is read as it is
    tried = 0

    @settings(
        max_examples=max(1, SLOW.get(name, 40) * (FUZZ or 40) // 40), deadline=LIMIT_S * 1000 if FUZZ else None,
        derandomize=not FUZZ, suppress_health_check=list(HealthCheck),
        database=DirectoryBasedExampleDatabase(REPOSITORY / ".hypothesis/fuzz") if FUZZ else None,
    )  # fmt: skip
    @given(st.integers(0, 2**32))
    def read(seed: int) -> None:
        nonlocal tried
        tried += 1
        random = Random(seed)
        with contextlib.suppress(UsageError):
            reader.run(reader.mutate(random.choice(seeds), random), folder)

    read()
    record_property("inputs read", (name, tried))


def test_every_import_format_has_a_target() -> None:
    assert importer._PARSERS.keys() <= READERS.keys()


CHECKLIST = b"""\
schema: kdoctor/checklist/v1
name: x
version: %s
owner: o
checks:
  - {id: host.memory, parameters: {%s}}
without: {baseline: r, edge-case: r, failure-path: r}
"""
LONG = b"9" * 5000


@cases(
    *(("checklist", CHECKLIST % (tag, b"")) for tag in (b'!!int ""', b"!!bool maybe", b"!!timestamp x", b"!!float x")),
    *(
        ("checklist", CHECKLIST % (number, b""))
        for number in (LONG, b"0x" + b"f" * 5000, b".inf", b".nan", b"1.0e+400")
    ),
    *(
        ("checklist", CHECKLIST % (b"1", b"least_share: " + number))
        for number in (b".inf", b"-.inf", b"-1", b"1.0e+308", b".nan", LONG)
    ),
    ("lock", b"schema: kdoctor/lock/v1\nversion: !!int ''\ndigest: x\n"),
    ("version matrix", b"schema: kdoctor/version-matrix/v1\nx: !!bool maybe\n"),
    *(
        ("snapshot", b'{"schema": "kdoctor/snapshot/v1", "kdoctor": %s}' % number)
        for number in (LONG, b"1e400", b"NaN")
    ),
    ("snapshot", '{"schema": "kdoctor/snapshot/v1²"}'.encode()),
    ("snapshot", b"[" * 100_000),
    ("notebook", b'{"cells": [], "nbformat": %s}' % LONG),
    (
        "script",
        b"import tensorflow as tf\nx = 2.5 * %s\ny = [1, 2][1e999]\ntf.distribute.MirroredStrategy()\n" % LONG[:400],
    ),
    ("history", b"SQLite format 3\x00" + bytes(4096)),
    ("nvidia-smi topo -m", b"\tGPU0\tCPU Affinity\nGPU%s\tX\t0-%s\n" % (LONG, LONG)),
    ("kernel log", b"[    1.0] NVRM: Xid (PCI:0000:01:00): %s, x\n" % LONG),
    ("version matrix", b"schema: kdoctor/version-matrix/v1\nknown_bad:\n  - {install: 'a b'}\n"),
    *(
        ("names of nodes", text)
        for text in (b"a[-%s]" % LONG[:400], b"a[9999999990-99999999999]", b"a[%s]" % LONG, b"a[1-1_0000016]")
    ),
    ("pods", b'{"items": [{"metadata": {"creationTimestamp": ""}, "spec": {"nodeName": "a"}}]}'),
    ("pods", b'{"items": [{"metadata": {"name": "a", "creationTimestamp": ""}, "status": "x"}]}'),
    ("pods", b"[" * 100_000),
    (
        "pods",
        (
            b'{"items": [{"metadata": {"name": "a", "creationTimestamp": ""},'
            b' "spec": {"containers": [{"name": "a"}]},'
            b' "status": {"containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 1e999}}}]}}]}'
        ),
    ),
    ("wheel", machines._zip({**machines.WHEEL, "tensorflow-2.19.0.dist-info/WHEEL": "Tag: x\n"})),
    ("events of trainings", b'{"gpu": 0, "once": {"x": 1, "name": []}, "errors": {}}'),
    ("InfiniBand in /sys", b'{"sys/class/infiniband/mlx5_0/ports": "x"}'),
    ("kernel log", b"[%s.%s] NVRM: Xid (PCI:0000:01:00): 79, x\n" % (LONG, LONG)),
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_input_that_once_crashed_is_refused_or_read(tmp_path: Path, name: str, data: bytes) -> None:
    with contextlib.suppress(UsageError):
        READERS[name].run(data, tmp_path)


@pytest.mark.parametrize("number", [".inf", "-1", "-0.5", "1.0e+300"])
def test_parameter_that_is_no_limit_is_refused_at_its_place(number: str) -> None:
    data = CHECKLIST % (b"1", f"least_gib: {number}".encode())
    with pytest.raises(ChecklistError) as caught:
        load_checklist("x.yaml", catalog(), read=lambda _: data)
    assert any((item.line, item.column) == (6, 47) for item in caught.value.problems)


def test_chain_of_1500_checklists_is_refused() -> None:
    def read(path: Path) -> bytes:
        number = int(path.stem)
        return b"schema: kdoctor/checklist/v1\nname: x\nversion: 1\nextends: ./%d.yaml\n" % (number + 1)

    with pytest.raises(ChecklistError):
        load_checklist("./1.yaml", catalog(), read=read)


@pytest.mark.parametrize("number", [2**63, -(2**63), 2**80, -(2**80)])
def test_run_with_a_huge_number_does_not_exist(number: int, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run"), opened(tmp_path / "none", create=False) as connection:
        history.report_of(connection, number)


def test_gpus_in_any_order_are_laid_out() -> None:
    gpus = Gpus(state="ready", devices=tuple(Gpu(index=index) for index in (2, 0, 1)))
    layout = read_layout(gpus, None)
    assert [place.gpu.index for place in layout.places] == [0, 1, 2]
    assert write_topology(layout, (), ())


@pytest.mark.parametrize("text", SECRETS.values())
def test_secret_is_masked_wherever_it_is_recorded(text: str) -> None:
    redaction = Redaction(home="/home/ada", user="ada")
    for shown in (
        mask(text),
        redaction.text(text),
        mask_variable("NCCL_X", text),
        str(redaction.apply({"name": [text]})),
    ):
        assert "SECRETVALUE" not in shown


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "x\x00.yaml", HOSTILE["clear screen"] + ".yaml"])
def test_extends_shows_nothing_of_a_file_that_is_no_checklist(path: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("SECRETVALUE: 1\n")
    for named in (path, str(secret)):
        file = tmp_path / "job.yaml"
        file.write_text(f"schema: kdoctor/checklist/v1\nname: x\nversion: 1\nextends: {named!r}\n")
        with pytest.raises(ChecklistError) as caught:
            load_checklist(str(file), catalog())
        assert "SECRETVALUE" not in str(caught.value)
        assert "root:" not in str(caught.value)
