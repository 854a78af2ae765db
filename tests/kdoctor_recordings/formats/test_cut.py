"""Truncated dumps are read without a crash, and give no fact that the complete dump does not give."""

import contextlib
import dataclasses
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.cases import cases
from helpers.kdoctor_recordings.corpus import recorded
from helpers.kdoctor_recordings.dumps import LOG, LSPCI, NVLINK, TABLE, TOPOLOGY, query, xml
from kdoctor.errors import UsageError
from kdoctor.facts import FactGroup, Gpus, KernelLog, PciDevices
from kdoctor_recordings.facts import ImportedLines
from kdoctor_recordings.importer import import_files

DUMPS = {
    "query": query("3B", "AF"),
    "xml": xml("3B", "AF"),
    "table": TABLE,
    "topology": TOPOLOGY,
    "access": " \tGPU0\tGPU1\t\n GPU0\tX\tGNS\t\n GPU1\tGNS\tX\t\n",
    "nvlink": NVLINK,
    "lspci": LSPCI,
    "log": LOG,
    "version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.173.02  Tue Jun 23 08:38:17 UTC 2026\nGCC: 14\n",
}
AT_LEAST = {"clock_event_reasons", "ecc_uncorrected_volatile", "ecc_uncorrected_aggregate", "ecc_corrected_volatile"}
"""Fields of which a part may be reported if that part is already bad."""


def read(text: str) -> Mapping[type[FactGroup], FactGroup]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dump"
        path.write_bytes(text.encode())
        return import_files([path]).facts


@cache
def whole(name: str) -> Mapping[type[FactGroup], FactGroup]:
    return read(DUMPS[name])


def assert_no_new_facts(cut: Any, full: Any) -> None:
    """Every fact of an item is unknown or equal to that of the complete dump."""
    for field in dataclasses.fields(cut):
        value, meant = getattr(cut, field.name), getattr(full, field.name)
        if field.name in {"errors", "error", "lines"} or value is None or value == meant:
            continue
        if field.name in AT_LEAST:
            assert value, field.name  # not "none": a healthy value
        elif field.name in {"numbered", "named"}:
            assert field.name == "named" or not value, field.name
        elif field.name in {"processes", "nvlinks"}:
            assert value, field.name
            for item, whole_item in zip(value, meant, strict=False):
                assert_no_new_facts(item, whole_item)
        elif field.name == "path":
            assert [bridge.bus_id for bridge in value] == [bridge.bus_id for bridge in meant]
        else:
            pytest.fail(f"{field.name} is {value!r}, but {meant!r} in the whole dump")


@pytest.mark.parametrize("name", DUMPS)
@settings(max_examples=150)
@given(data=st.data())
def test_cut_anywhere(name: str, data: st.DataObject) -> None:
    text = DUMPS[name]
    end = data.draw(st.integers(0, len(text)))
    assert_part_of(text[:end], whole(name))


RECORDED = [
    "smi-q/a10-535.129.03-remap-pending.txt",
    "smi-q/h100x8-535.161.08-hwslowdown-all.txt",
    "smi-q/rtx4090x8-535.154.05-mixed-load.txt",
    "smi-table/rtx4090-525-ERR-fan-exclusive.txt",
    "smi-x/gtx-v100s-x8-460.73.xml",
    "smi-x/l4x2-555-one-x1-link.xml",
    "nvlink/a100x8-status-gpud.txt",
    "ecc/retired-pages-x8-bad.txt",
    "topo/nccl667-4gpu-pxb-pix-sys.txt",
    "topo/quda669-8gpu-pix-pxb-sys-nonuma-column.txt",
    "topo/ml-engineering-8xh100-nv18.txt",
]
CUTS = 25


@pytest.mark.corpus
@pytest.mark.parametrize("file", RECORDED)
def test_recorded_dumps_cut(file: str) -> None:
    text = recorded(file).read_text(encoding="utf-8")
    full = read(text)
    for place in range(CUTS):
        # Spread over the file, and at every column of a line.
        assert_part_of(text[: len(text) * place // CUTS + place], full)


def assert_part_of(text: str, full: Mapping[type[FactGroup], FactGroup]) -> None:
    """Every fact of a truncated dump is unknown or equal to that of the complete dump."""
    try:
        facts = read(text)
    except UsageError:
        return  # too short to detect its kind
    facts = {kind: group for kind, group in facts.items() if kind is not ImportedLines}
    assert set(facts) <= set(full)
    for kind, group in facts.items():
        if isinstance(group, Gpus):
            compare_gpus(group, full[kind])
        elif isinstance(group, PciDevices):
            compare_pci(group, full[kind])
        elif isinstance(group, KernelLog):
            assert {(event.kind, event.code) for event in group.events} <= {("xid", 79)}
        else:
            assert_no_new_facts(group, full[kind])


def compare_gpus(cut: Gpus, full: FactGroup) -> None:
    assert isinstance(full, Gpus)
    for name in ("driver_version", "cuda_driver_version", "count"):
        assert getattr(cut, name) in {None, getattr(full, name)}
    for gpu, meant in zip(cut.devices, full.devices, strict=False):
        assert_no_new_facts(gpu, meant)
    pairs = {(pair.first, pair.second): pair for pair in full.pairs}
    for pair in cut.pairs:
        assert_no_new_facts(pair, pairs[pair.first, pair.second])


def compare_pci(cut: PciDevices, full: FactGroup) -> None:
    assert isinstance(full, PciDevices)
    for device in cut.devices:
        meant = full.find(device.bus_id)
        assert meant is not None
        assert_no_new_facts(device, meant)


@settings(max_examples=200)
@given(
    name=st.sampled_from(sorted(DUMPS)),
    place=st.integers(0, 10_000),
    junk=st.text(max_size=20),
    drop=st.integers(0, 200),
)
def test_corrupted_dump_does_not_crash(name: str, place: int, junk: str, drop: int) -> None:
    text = DUMPS[name]
    place %= len(text)
    with contextlib.suppress(UsageError):
        read(text[:place] + junk + text[place + drop :])


@cases(
    (LSPCI, "Kernel driver"),
    (NVLINK, "Link 1"),
    ("index, temperature.gpu\n0, 34\n1, 35\n", "0, 34"),
    ids=["lspci", "links", "table"],
)
def test_only_the_line_that_is_cut_off_is_lost(tmp_path: Path, text: str, kept: str) -> None:
    """A file that ends within a line says as much as one that ends before it."""
    end = text.index("\n", text.rindex(kept)) + 1
    cut, ended = tmp_path / "cut", tmp_path / "ended"
    cut.write_text(f"{text[:end]}{text[end : end + 3]}", encoding="utf-8")
    ended.write_text(text[:end], encoding="utf-8")
    groups = [
        {kind: group for kind, group in import_files([path]).facts.items() if kind is not ImportedLines}
        for path in (cut, ended)
    ]
    assert groups[0] == groups[1]
