import dataclasses
import json

import pytest

from helpers import facts as healthy
from helpers.cases import cases
from kdoctor.facts import Gpu, GpuProcess, Gpus, KerasChoice, Packages, TensorFlowBuild
from kdoctor.probes.process.records import RecordError, build

KERAS = {"package": "keras", "version": "3.15.1", "legacy": False, "backend": "tensorflow", "backend_from": "default"}


def test_nested_facts_survive_a_round_trip() -> None:
    device = healthy.gpu(0, processes=(GpuProcess(pid=1, used_memory_bytes=None),), errors={"name": "x"})
    gpus = healthy.gpus(2, device, healthy.gpu(1))
    assert build(Gpus, json.loads(json.dumps(dataclasses.asdict(gpus)))) == gpus


def test_defaults_may_be_missing_and_unknown_keys_are_ignored() -> None:
    assert build(Gpu, {"index": 3, "colour": "green"}) == Gpu(index=3)


@cases(
    (Gpu, {"index": "0"}, "Gpu.index is '0'"),
    (Gpu, {"index": True}, "Gpu.index is True"),
    (Gpu, {"index": 1.5}, "Gpu.index is 1.5"),
    (Gpu, {}, "Gpu.index is missing"),
    (Gpu, [], r"Gpu is \[\]"),
    (Gpu, None, "Gpu is None"),
    (Gpu, {"index": 0, "errors": {"name": 1}}, "Gpu.errors.name is 1"),
    (Gpu, {"index": 0, "processes": [{"pid": "x"}]}, r"Gpu.processes\[0\].pid is 'x'"),
    (Gpus, {"state": "splendid"}, "Gpus.state is 'splendid'"),
    (Packages, {"installed": [{"name": "a"}]}, r"Packages.installed\[0\].version is missing"),
    (Packages, {"installed": "abc"}, "Packages.installed is 'abc'"),
    (TensorFlowBuild, {"installed": "yes"}, "TensorFlowBuild.installed is 'yes'"),
    (KerasChoice, {**KERAS, "package": ["keras"]}, "KerasChoice.package is"),
)
def test_invalid_record_is_rejected_with_its_field(kind: type[object], record: object, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        build(kind, record)
