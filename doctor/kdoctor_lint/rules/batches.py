"""What the rules about batches share."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from kdoctor_lint.flow.trace import Trace, literal
from kdoctor_lint.flow.values import Dataset, Number, Strategy, Value
from kdoctor_lint.names import SYNCHRONOUS

PER_REPLICA = re.compile(
    r"(?<![a-z])per_?(replica|gpu|device|core|tpu|accelerator)(?![a-z])|(?<![a-z])(replica|local)_?batch", re.IGNORECASE
)
GLOBAL = re.compile(r"global|total|effective", re.IGNORECASE)
DEVICE_COUNT = re.compile(
    r"(?:.*_)?(?:(?:num(?:ber)?|n|no)_?(?:of_)?(?:gpus?|devices|replicas|accelerators|tpu_cores)"
    r"|(?:gpus?|devices?|replicas?)_(?:count|num)|ngpus?)",
    re.IGNORECASE,
)
"""Matches the whole of a name that says: this is the number of devices."""


@dataclass(frozen=True, kw_only=True)
class FixedBatch:
    """A batch size that the strategy divides among the replicas, and that stands in the code as a number."""

    node: ast.AST
    size: Number
    where: str
    """``batch()`` or ``fit(batch_size=)``."""


def fixed_batches(trace: Trace) -> Iterator[FixedBatch]:
    """Every number by which a strategy with several replicas in step surely divides batches."""
    for node, given, where in _global_batches(trace):
        size = literal(given)
        if size is not None:
            yield FixedBatch(node=node, size=size, where=where)


def _global_batches(trace: Trace) -> Iterator[tuple[ast.AST, Value, str]]:
    for event in trace.fitted:
        if not splits(event.home):
            continue
        if isinstance(event.data, Dataset) and event.data.batch is not None and event.data.node is not None:
            yield event.data.node, event.data.batch, "batch()"
        elif event.batch_size is not None:
            yield event.node, event.batch_size, "fit(batch_size=)"
    for given in trace.distributed:
        if splits(given.strategy) and given.data.batch is not None and given.data.node is not None:
            yield given.data.node, given.data.batch, "batch()"


def splits(strategy: Strategy | None) -> bool:
    """Whether a strategy is known to divide every batch among its replicas, if it has several."""
    return strategy is not None and bool(strategy.kinds & SYNCHRONOUS)


def says_count(number: Number) -> list[str]:
    """The names of a number, or of its factors, that say that it is a number of devices."""
    return sorted(name for name in number.names if DEVICE_COUNT.fullmatch(name))


def says_global(number: Number) -> bool:
    """Whether a name of the number says that it is meant for all replicas together."""
    return any(GLOBAL.search(name) for name in number.names)


def says_per_replica(number: Number) -> bool:
    """Whether a name of the number says that it is meant for one replica, and none that it is for all."""
    return any(PER_REPLICA.search(name) for name in number.names) and not says_global(number)
