from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace
from kdoctor_lint.rules._batches import splits, trained_datasets
from kdoctor_lint.rules._examples import training


def _judge(trace: Trace) -> Hits:
    for strategy, data in trained_datasets(trace):
        if data.frozen is not None and splits(strategy):
            yield data.frozen, "`cache` after `shuffle` keeps the order of the first epoch"


_BAD = training("""strategy = tf.distribute.MirroredStrategy()
batch_size = 32 * strategy.num_replicas_in_sync
dataset = tf.data.TFRecordDataset(files).shuffle(10_000).cache().batch(batch_size).prefetch(tf.data.AUTOTUNE)
""")
RULE = Rule(
    id="lint.cache-after-shuffle",
    code="KD207",
    severity=Severity.WARNING,
    title="Checks for datasets that are cached after they were shuffled.",
    why="""The cache stores the order of the first epoch. Every later epoch then sees the same examples in the same
order, and in the same batches.""",
    fix="Cache first, then shuffle.",
    bad=_BAD,
    good=_BAD.replace(".shuffle(10_000).cache()", ".cache().shuffle(10_000)"),
    sources=("https://www.tensorflow.org/guide/data_performance", MEASURED),
    judge=_judge,
)
