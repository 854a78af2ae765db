import ast
import re
from collections.abc import Iterator

from kdoctor_lint.flow.trace import has_several, literal
from kdoctor_lint.flow.values import Counted, Many, Number, Text
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.names import WORKER, Kind, kind_of
from kdoctor_lint.rules._batches import count_names, divided_batches

_INITIALIZE = frozenset({"jax.distributed.initialize", "keras.distribution.initialize"})
_COUNTS = frozenset({"jax.process_index", "jax.process_count"})
_GPU = re.compile(r"gpu:\d+$", re.IGNORECASE)
_SEVERAL = re.compile(r"\s*\d+\s*(,\s*\d+\s*)+,?\s*")  # Numbers of several GPUs


def _judge(trace: Trace) -> Hits:
    for late in trace.late:
        if late.what.startswith("tf."):
            yield late.node, f"`{late.what}` fails after a strategy was created"
        elif late.what.startswith("keras."):
            if any(event.model is model for event in trace.fitted[late.before :] for model in late.models):
                yield late.node, "distribution is set after the model was built, so its variables are not distributed"
        elif late.what != "TF_CONFIG" and trace.scopes > late.before:  # or it is for processes that are started later
            yield late.node, f"`{late.what}` has no effect after a strategy was created"


def _judge_cluster(trace: Trace) -> Hits:
    for late in trace.late:
        if late.what == "TF_CONFIG" and trace.scopes > late.before:  # or it is for processes that are started later
            yield late.node, "`TF_CONFIG` is set after the strategy has read it"


def _judge_jax(trace: Trace) -> Hits:
    names = {call.name for call in trace.calls}
    distributes = any(late.what.startswith("keras.distribution") for late in trace.late)
    # Code of another library may initialize it.
    if distributes and not names & _INITIALIZE and not any(kind_of(name) is Kind.UNKNOWN for name in names):
        for call in [call for call in trace.calls if call.name in _COUNTS][:1]:
            yield call.node, f"`{call.name}` counts processes, but `jax.distributed` is never initialized"


def _judge_counts(trace: Trace) -> Hits:
    for node, number, use in _uses(trace):
        counts = [name for name in count_names(number) if name in trace.counts and name not in trace.verified]
        if counts:
            kind = "worker" if WORKER.search(counts[0]) else "device"
            yield trace.counts[counts[0]], f"{counts[0]} is a hard-coded {kind} count, and {use}"
        elif not number.names:
            yield node, f"{number.value:g} is a hard-coded device count, and {use}"


def _uses(trace: Trace) -> Iterator[tuple[ast.AST, Number, str]]:
    for strategy in trace.strategies:
        devices = strategy.devices
        count = literal(devices.count) if isinstance(devices, Counted) and "gpu" in devices.text.lower() else None
        if has_several(strategy) and count is not None:
            yield strategy.node, count, "the strategy's device list is built from it"
    for _, node, size, _ in divided_batches(trace):
        if literal(size) is not None and count_names(size):
            yield node, size, "the batch size depends on it"
    for node, size in trace.meshes:
        if size.value != 1:
            yield node, size, "the mesh of all devices depends on it"


def _judge_lists(trace: Trace) -> Hits:
    for strategy in trace.strategies:
        if not has_several(strategy) or not isinstance(strategy.devices, Many):
            continue
        names = [item.value for item in strategy.devices.items if isinstance(item, Text)]
        if names and all(_GPU.search(name) for name in names):
            yield strategy.node, f"strategy uses a hard-coded list of GPUs: {', '.join(names)}"
    if any(map(has_several, trace.strategies)):
        for node, name, value in trace.variables:
            if name == "CUDA_VISIBLE_DEVICES" and isinstance(value, Text) and _SEVERAL.fullmatch(value.value):
                yield node, f"`CUDA_VISIBLE_DEVICES` is a hard-coded list of GPUs: {value.value}"


def _judge_listing(trace: Trace) -> Hits:
    for call in trace.calls:
        if call.name == "tensorflow.python.client.device_lib.list_local_devices":
            yield call.node, "`list_local_devices()` initializes every GPU of the machine"


RULE = Rule(id="lint.late-device-config", code="KD306", severity=Severity.ERROR, judge=_judge)
CLUSTER = Rule(id="lint.late-tf-config", code="KD305", severity=Severity.ERROR, judge=_judge_cluster)
JAX = Rule(
    id="lint.jax-not-initialized",
    code="KD310",
    severity=Severity.WARNING,
    judge=_judge_jax,
    words=("process_index", "process_count"),
)
COUNTS = Rule(
    id="lint.hard-coded-device-count",
    code="KD301",
    severity=Severity.INFO,
    judge=_judge_counts,
    words=("distribute", "Strategy", "DeviceMesh"),
)
LISTS = Rule(id="lint.hard-coded-devices", code="KD302", severity=Severity.INFO, judge=_judge_lists)
LISTING = Rule(
    id="lint.list-local-devices",
    code="KD303",
    severity=Severity.INFO,
    judge=_judge_listing,
    words=("list_local_devices",),
)
