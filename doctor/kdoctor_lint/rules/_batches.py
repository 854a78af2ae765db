"""What the rules about batches share."""

import ast
import re
from collections.abc import Iterator

from kdoctor_lint.flow.trace import Trace
from kdoctor_lint.flow.values import DEVICES, Dataset, Number, Strategy
from kdoctor_lint.names import COUNT, EVALUATION, SINGLE, SOME, SYNCHRONOUS, WORKERS

_PER_REPLICA = re.compile(
    r"(?<![a-z])per_?(replica|gpu|device|core|tpu|accelerator)(?![a-z])|(?<![a-z])(replica|local)_?batch", re.IGNORECASE
)
_PER_WORKER = re.compile(r"(?<![a-z])per_?(worker|node|host)(?![a-z])", re.IGNORECASE)
_GLOBAL = re.compile(r"global|total|effective", re.IGNORECASE)


def divided_batches(trace: Trace) -> Iterator[tuple[Strategy | None, ast.AST, Number, str]]:
    """The strategies that divide a batch, where its size is given, the size, and the argument that has it."""
    for event in trace.fitted:
        if splits(event.home) and isinstance(event.batch_size, Number) and not isinstance(event.data, Dataset):
            yield event.home, event.node, event.batch_size, "fit(batch_size=)"
    for strategy, data in trained_datasets(trace):
        node, size = data.node, data.batch if splits(strategy) else None
        evaluates = isinstance(size, Number) and size.names and all(map(EVALUATION.search, size.names))
        if isinstance(size, Number) and node is not None and not evaluates:
            yield strategy, node, size, _where(node)


def grows(trace: Trace) -> bool:
    """Whether a batch is for all replicas: that of a training, or one that the script computes."""
    sizes = [size for *_, size, _ in divided_batches(trace)]
    products = any(size.scaled or (size.product and count_names(size)) for size in sizes)
    known = any(size.value is not None for size in sizes)  # what the script computes is for something else
    return products or (not known and any(re.search("batch", name, re.IGNORECASE) for name, _ in trace.scaled))


def trained_datasets(trace: Trace) -> Iterator[tuple[Strategy | None, Dataset]]:
    """The datasets that a strategy certainly trains on."""
    for event in trace.fitted:
        if isinstance(event.data, Dataset):
            yield event.home, event.data
    yield from trace.distributed


def has_workers(strategy: Strategy | None) -> bool:
    """Whether a strategy certainly has several workers."""
    return strategy is not None and strategy.kinds - SINGLE == WORKERS


def _where(node: ast.AST) -> str:
    called = ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else "batch"
    return f"{called}(batch_size=)" if called.endswith("_from_directory") else f"{called}()"


def splits(strategy: Strategy | None) -> bool:
    """Whether a strategy certainly divides each batch among its replicas, if it has several."""
    return strategy is not None and bool(strategy.kinds & (SYNCHRONOUS | SOME))


def count_names(number: Number) -> list[str]:
    """The names of a number, or of its factors, that mean a number of devices or of workers."""
    return sorted(name for name in number.names if COUNT.fullmatch(name))


def is_global(number: Number) -> bool:
    """Whether a name of the number means a size for all replicas together."""
    return any(_GLOBAL.search(name) for name in number.names)


def shown(number: Number) -> str:
    """The names of a number, and its value if the script shows it."""
    value = f" ({number.value:g})" if number.value is not None else ""
    return " or ".join(sorted(number.names)) + value


def is_one_replica(trace: Trace, number: Number, strategy: Strategy | None = None) -> bool:
    """Whether a size is for one replica, or for one worker: by its name, or because the script scales it elsewhere."""
    if number.scaled or number.product or is_global(number):
        return number.growth == DEVICES and has_workers(strategy)
    workers = has_workers(strategy) and any(_PER_WORKER.search(name) for name in number.names)
    return is_per_replica(number) or workers or bool(number.keys & trace.scaled)


def is_per_replica(number: Number) -> bool:
    """Whether a name means a size for one replica, and none a global size. A product is for several replicas."""
    return not number.product and any(_PER_REPLICA.search(name) for name in number.names) and not is_global(number)
