"""What the methods of a ``tf.data`` pipeline make of it."""

from __future__ import annotations

import ast

from kdoctor_lint.flow.arguments import Arguments
from kdoctor_lint.flow.values import NONE, UNKNOWN, Dataset, Truth, Value

_KEEPING = frozenset({
    "assert_cardinality", "cache", "concatenate", "enumerate", "filter", "flat_map", "ignore_errors", "interleave",
    "map", "rejection_resample", "scan", "shard", "shuffle", "snapshot", "window", "with_options",
})  # fmt: skip
_TRUNCATING = frozenset({"take", "take_while", "skip"})


def pipeline(receiver: Value, name: str, node: ast.AST, given: Arguments) -> Value:
    """What ``receiver.name(...)`` is; a receiver that is not known becomes a pipeline by being batched."""
    after = receiver.copy() if isinstance(receiver, Dataset) else Dataset(source_shown=False)
    if name in {"batch", "padded_batch"}:
        return _batched(after, node, name, given)
    if name in _KEEPING:
        return after
    if name in _TRUNCATING:
        after.truncated = after.batch is not None
        return after
    if name == "prefetch":
        after.prefetched = after.batch is not None
        return after
    if name == "repeat":
        after.repeated = after.repeated or after.batch is None
        return after
    # unbatch, apply, rebatch, and whatever comes: nothing is known any more.
    return UNKNOWN


def _batched(after: Dataset, node: ast.AST, name: str, given: Arguments) -> Value:
    if after.batch is not None:
        # A batch of batches: which of the two is the step's is not worth guessing.
        return UNKNOWN
    after.batch = given.get(0, "batch_size") or UNKNOWN
    after.node = node
    drops = given.get(1 if name == "batch" else 3, "drop_remainder") or NONE
    after.drops = given.spread or not (drops is NONE or (isinstance(drops, Truth) and not drops.value))
    return after
