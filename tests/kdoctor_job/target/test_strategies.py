"""Settings of devices that have no effect in the examination, and what they would do in the job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from helpers.cases import cases

pytestmark = pytest.mark.tensorflow


class Gpu(NamedTuple):
    """A physical device."""

    name: str


GPUS = [Gpu("/physical_device:GPU:0"), Gpu("/physical_device:GPU:1")]


@cases(
    ([], False),
    ([("set_memory_growth", GPUS[0], True)], True),
    ([("set_memory_growth", gpu, True) for gpu in GPUS], False),
    ([("set_memory_growth", GPUS[0], True), ("set_memory_growth", GPUS[1], False)], True),
    ([("set_visible_devices", GPUS[0], "GPU"), ("set_memory_growth", GPUS[0], True)], False),
    (
        [("set_visible_devices", [Gpu("/physical_device:CPU:0"), GPUS[1]], None), ("set_memory_growth", GPUS[0], True)],
        False,
    ),
    ([("set_visible_devices", GPUS, "GPU"), ("set_memory_growth", GPUS[0], True)], True),
    ([("set_visible_devices", [], "CPU"), ("set_memory_growth", GPUS[0], True)], True),
    ([("intra_op_parallelism_threads", 2)], False),
)
def test_memory_growth_of_some_gpus_is_refused_as_tensorflow_does(
    monkeypatch: pytest.MonkeyPatch, settings: list[tuple[Any, ...]], *, refused: bool
) -> None:
    import tensorflow as tf

    from kdoctor_job.target.strategies import OwnStrategy

    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: GPUS)
    own = OwnStrategy(replicas=None)
    for setting in settings:
        own.note(*setting)
    if not refused:
        own.start()
        return
    with pytest.raises(ValueError, match="Memory growth cannot differ between GPU devices"):
        own.start()


MISSING = "/job:localhost/replica:0/task:0/device:GPU:2"


@cases(
    (None, [], None),
    (["GPU:0", "/gpu:1"], [], None),
    (["/device:GPU:1", MISSING], [], MISSING),
    (["GPU:0", "GPU:1"], [("set_visible_devices", GPUS[1], "GPU")], "GPU:1"),
    (["GPU:2"], [("set_logical_device_configuration", GPUS[0], [1, 2])], None),
    (["CPU:0", "CPU:7"], [], None),
)
def test_device_that_does_not_exist_is_named(
    monkeypatch: pytest.MonkeyPatch, devices: list[str] | None, settings: list[tuple[Any, ...]], absent: str | None
) -> None:
    import tensorflow as tf

    from kdoctor_job.target.parts import PartError
    from kdoctor_job.target.strategies import OwnStrategy

    own = OwnStrategy(replicas=None)
    for setting in settings:
        own.note(*setting)
    own.start(devices)  # without GPUs, nothing is known
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: GPUS)
    if absent is None:
        own.start(devices)
        return
    with pytest.raises(PartError, match=f"waits for {absent}, which TensorFlow does not list"):
        own.start(devices)


@cases(
    ("CPU", None, "Collective"),
    ("CPU", "HierarchicalCopyAllReduce", "HierarchicalCopyAllReduce"),
    ("CPU", "NcclAllReduce", "ReductionToOneDevice"),
    ("GPU", "NcclAllReduce", "NcclAllReduce"),
)
def test_gradients_are_added_up_as_the_job_asks(kind: str, asked: str | None, used: str) -> None:
    import tensorflow as tf

    from kdoctor_job.target.strategies import OwnStrategy

    collective = type("Collective", (), {})()
    extended = SimpleNamespace(worker_devices=[f"/device:{kind}:0"], _collective_ops=collective)
    own = OwnStrategy(replicas=SimpleNamespace(extended=extended))
    own.communicate(getattr(tf.distribute, asked)() if asked else None)
    assert type(extended._cross_device_ops).__name__ == used
    with pytest.raises(TypeError):
        own.communicate(no_such_argument=1)  # type: ignore[call-arg]
