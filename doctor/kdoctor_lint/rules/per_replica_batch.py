from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._batches import count_names, fixed_batches, is_global, is_per_replica
from kdoctor_lint.rules._examples import training


def _judge(trace: Trace) -> Hits:
    for batch in fixed_batches(trace):
        size = batch.size
        shown = f"{' or '.join(sorted(size.names))} ({size.value:g})"
        if count_names(size):
            continue
        if is_per_replica(size):
            yield batch.node, f"`{batch.where}` gets the per-replica batch size {shown} instead of the global one"
        elif size.names & trace.scaled and not (size.product or is_global(size)):
            yield (
                batch.node,
                f"`{batch.where}` gets {shown}, not the global batch size that the script computes from it",
            )


_BAD = training("""PER_REPLICA_BATCH = 64
strategy = tf.distribute.MirroredStrategy()
dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(PER_REPLICA_BATCH).prefetch(tf.data.AUTOTUNE)
""")
_GLOBAL = "global_batch = PER_REPLICA_BATCH * strategy.num_replicas_in_sync\n"
RULE = Rule(
    id="lint.per-replica-batch",
    code="KD201",
    severity=Severity.WARNING,
    title="Checks for datasets batched with the per-replica instead of the global batch size.",
    why="""`Model.fit` and `experimental_distribute_dataset` split every batch into one part per replica. A dataset
batched with the per-replica size leaves each replica only a fraction of it. Steps are then dominated by
overhead, and batch statistics come from few examples.""",
    fix="Multiply the per-replica batch size by `strategy.num_replicas_in_sync`.",
    bad=_BAD,
    good=_BAD.replace("Strategy()\n", f"Strategy()\n{_GLOBAL}").replace("(PER_REPLICA_BATCH)", "(global_batch)"),
    sources=(
        "https://www.tensorflow.org/tutorials/distribute/input",
        "https://keras.io/guides/distributed_training_with_tensorflow/",
    ),
    judge=_judge,
)
