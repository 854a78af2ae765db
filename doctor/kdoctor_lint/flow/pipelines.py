"""What the methods of a ``tf.data`` pipeline make of it."""

from dataclasses import replace

from kdoctor_lint.flow.call import Call
from kdoctor_lint.flow.values import NONE, UNKNOWN, Dataset, External, Object, Truth, Value

_KEEPING = frozenset({
    "assert_cardinality", "cache", "concatenate", "enumerate", "filter", "flat_map", "ignore_errors", "interleave",
    "map", "rejection_resample", "scan", "shard", "shuffle", "snapshot", "window", "with_options",
})  # fmt: skip
_CHEAP = frozenset({"assert_cardinality", "cache", "enumerate", "shard", "shuffle", "window", "with_options"})
_ALONE = _KEEPING - {"concatenate", "flat_map", "interleave"}
"""Methods after which the elements come from the same source."""
_TRUNCATING = frozenset({"take", "take_while", "skip"})


def pipeline(call: Call, receiver: Value, name: str) -> Value:
    """The result of ``receiver.name(...)``. An unknown receiver becomes a pipeline when it is batched."""
    before = receiver if isinstance(receiver, Dataset) else Dataset(source_shown=False)
    if name in {"batch", "padded_batch"}:
        return _batched(call, before, name)
    if name in _TRUNCATING:
        return replace(before, truncated=before.batch is not None)
    if name == "prefetch":
        return replace(before, prefetched=before.batch is not None)
    if name == "repeat":
        return replace(before, repeated=before.repeated or before.batch is None)
    # After unbatch, apply, rebatch and others, nothing is known.
    return _kept(call, before, name) if name in _KEEPING else UNKNOWN


def _kept(call: Call, before: Dataset, name: str) -> Dataset:
    frozen = call.site if name == "cache" and before.shuffled else before.frozen
    return replace(
        before,
        in_memory=before.in_memory and name in _CHEAP,
        shuffled=before.shuffled or name in {"shuffle", "rejection_resample"},
        frozen=None if name == "shuffle" else frozen,
        sharded=before.sharded or name == "shard",
        policy=_policy(call) if name == "with_options" else before.policy,
        source=before.source if name in _ALONE else "",
    )


def _policy(call: Call) -> str:
    options = call.get(0, "options")
    policy = options.attributes.get("auto_shard_policy") if isinstance(options, Object) else None
    return policy.name.rpartition(".")[2] if isinstance(policy, External) else ""


def _batched(call: Call, before: Dataset, name: str) -> Value:
    if before.batch is not None:
        # Batches of batches: either one may be the batch of a training step.
        return UNKNOWN
    drops = call.get(1 if name == "batch" else 3, "drop_remainder") or NONE
    return replace(
        before,
        batch=call.get(0, "batch_size") or UNKNOWN,
        node=call.site,
        drops=call.spread or not (drops is NONE or (isinstance(drops, Truth) and not drops.value)),
    )
