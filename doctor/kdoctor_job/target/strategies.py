"""Strategies that the job's own functions make, and devices that it sets.

Many jobs make a ``MirroredStrategy`` in the function that builds the model. TensorFlow refuses it in the scope of
another strategy, and it would not have the replicas of the examination. So the job gets a replacement; also for a
``MultiWorkerMirroredStrategy``, each worker of which trains in the same way.

Most scripts for GPUs begin with ``set_memory_growth`` or the like. TensorFlow refuses such settings once there are
devices, and those of the examination are there when the job's module is imported.
"""

from __future__ import annotations

import functools
import re
import threading
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional

import tensorflow as tf
from tensorflow.python.eager import context

from kdoctor_job.target.parts import PartError, is_own_class
from kdoctor_target.runner.case import NotHere

_THREAD = threading.local()
_GPU = re.compile(r"(?i)\bGPU:(\d+)$")
_TOO_LATE = "cannot be modified after"
"""What each setting that must precede the devices says."""


@dataclass
class OwnStrategy:
    """What the job's strategies are."""

    replicas: Any
    """The strategy of the examination."""
    made: str = ""
    """The class of the one that the job has made."""
    devices: Optional[int] = None
    """The number of devices that it names or makes visible."""
    workers: Optional[int] = None
    """Those of the cluster of one for several."""
    entered: bool = False
    """Whether the job has entered its scope."""
    divides: bool = False
    """Whether the job would make several logical devices of one."""
    grows: Dict[str, bool] = field(default_factory=dict)
    """Whether the memory of a GPU grows, for those that the job sets it for."""
    visible: Optional[List[str]] = None
    """The GPUs that the job makes visible; None for all."""

    def communicate(self, cross_device_ops: Any = None) -> None:
        """Add up gradients in the way that the job's strategy gets. Without GPUs there is no NCCL."""
        of_gpus = isinstance(cross_device_ops, tf.distribute.NcclAllReduce)
        if of_gpus and "GPU" not in self.replicas.extended.worker_devices[0]:
            cross_device_ops = tf.distribute.ReductionToOneDevice()
        extended = self.replicas.extended
        extended._cross_device_ops = cross_device_ops or extended._collective_ops  # noqa: SLF001 - no public one

    def current(self) -> Any:
        """The strategy of the examination, or the default one in a thread that trains on one device."""
        return tf.distribute.get_strategy() if getattr(_THREAD, "alone", False) else self.replicas

    def note(self, setting: str, value: Any, more: Any = None, *_: Any) -> None:
        """Note a setting of devices that has no effect here."""
        if setting == "set_logical_device_configuration":
            self.divides |= len(more) > 1
        elif setting == "set_memory_growth":
            self.grows[value.name] = more
        elif setting == "set_visible_devices" and more in (None, "GPU"):
            names = (one.name for one in (value if isinstance(value, list) else [value]))
            self.visible = [name for name in names if "GPU" in name]
            self.devices = len(self.visible)

    def start(self, devices: Any = None) -> None:
        """Start the devices as the job would, with those that its strategy gets.

        Raises:
            ValueError: TensorFlow would raise it.
            PartError: a device does not exist. TensorFlow would wait for it.
        """
        gpus = [gpu.name for gpu in tf.config.list_physical_devices("GPU")]
        visible = [gpu for gpu in gpus if self.visible is None or gpu in self.visible]
        if len({self.grows.get(gpu) for gpu in visible}) > 1:
            raise ValueError("Memory growth cannot differ between GPU devices")
        if not isinstance(devices, (list, tuple)):
            return
        self.devices = len(devices)
        absent = [one for one in devices if gpus and (gpu := _GPU.search(str(one))) and int(gpu[1]) >= len(visible)]
        if absent and not self.divides:
            fix = "Take them from tf.config.list_logical_devices('GPU'), or name none: the strategy then has all."
            raise PartError(
                "script", f"its strategy waits for {', '.join(absent)}, which TensorFlow does not list", fix
            )


def train_alone() -> None:
    """To be called in a new thread that trains on one device: the job's strategy has one replica there."""
    _THREAD.alone = True


def replace_own(strategy: Any) -> OwnStrategy:
    """From now on, each mirrored strategy that is made in this process has the attributes of this one.

    Until the job makes one, it may set devices, without effect.
    """
    own = OwnStrategy(strategy)
    _replace("MirroredStrategy", own)
    _replace("MultiWorkerMirroredStrategy", own, cluster_resolver=_resolver)
    _allow_settings(own)
    return own


def workers_of(resolver: Any) -> Optional[int]:
    """The number of workers, a chief included, of a cluster; None if it has none, or cannot be resolved here."""
    try:
        tasks = resolver.cluster_spec().as_dict()
    except Exception:
        return None
    return sum(len(tasks.get(kind, ())) for kind in ("chief", "worker")) or None


def _resolver() -> Any:
    return tf.distribute.cluster_resolver.TFConfigClusterResolver()


def _replace(name: str, own: OwnStrategy, **attributes: Callable[[], Any]) -> None:
    class Replacement(tf.distribute.Strategy):  # type: ignore[misc] # no types
        def __init__(self) -> None:
            """Without devices, which the strategy of the examination has."""

        def __getattribute__(self, attribute: str) -> Any:
            own.entered = own.entered or attribute == "scope"
            return attributes[attribute]() if attribute in attributes else getattr(own.current(), attribute)

    replacement = Replacement()

    def make(cls: Any, devices: Any = None, *more: Any, **named: Any) -> Any:
        if is_own_class(cls):
            raise NotHere(f"the job defines its strategy ({cls.__name__}), and only those of TensorFlow are examined")
        own.start(devices)
        own.made = name
        if "cluster_resolver" in attributes:
            own.workers = workers_of(devices or named.get("cluster_resolver") or _resolver())
        else:
            own.communicate(*more, **named)
        return replacement

    getattr(tf.distribute, name).__new__ = make  # Python does not call __init__ for an object of another class


def _allow_settings(own: OwnStrategy) -> None:
    """Ignore that devices are set too late, which they would not be in the job, until it has made a strategy."""

    def lenient(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            try:
                return function(*arguments, **named)
            except RuntimeError as error:
                if own.made or _TOO_LATE not in str(error):
                    raise
                own.note(function.__name__, *arguments[1:])
                return None

        return call

    kind = context.Context
    for name, member in list(vars(kind).items()):
        function: Any = member.fset if isinstance(member, property) else member
        if any(_TOO_LATE in str(one) for one in getattr(getattr(function, "__code__", None), "co_consts", ())):
            changed = lenient(function)
            setattr(kind, name, member.setter(changed) if isinstance(member, property) else changed)
