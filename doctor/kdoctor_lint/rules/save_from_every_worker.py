"""The rule lint.save-from-every-worker."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.model import Severity
from kdoctor_lint.flow.trace import Trace
from kdoctor_lint.model import Hit, Rule

_SEVERAL_PROCESSES = frozenset({"MultiWorkerMirroredStrategy"})


def _judge(trace: Trace) -> Iterator[Hit]:
    if not trace.strategies or not all(strategy.kinds <= _SEVERAL_PROCESSES for strategy in trace.strategies):
        return
    for saved in trace.saved:
        if saved.what == "ModelCheckpoint" and trace.legacy:
            # Keras 2's callback has each worker write to a path of its own.
            continue
        yield Hit(node=saved.node, message=f"{saved.what} writes {saved.path!r} in every worker")


RULE = Rule(
    id="lint.save-from-every-worker",
    severity=Severity.WARNING,
    title="Of several workers, each saves to a path of its own.",
    why="""Every worker runs the script. When all of them write the same file on a shared disk, one overwrites
or tears what another writes. Saving may need all workers at once, so let each save, the chief to the real path
and the others to temporary ones that they delete; the ModelCheckpoint of Keras 3 does not do this by itself.""",
    bad="""import keras
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(10)])
    model.compile(optimizer="adam", loss="mse")
model.fit(dataset)
model.save("/shared/model.keras")
""",
    good="""import keras
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(10)])
    model.compile(optimizer="adam", loss="mse")
model.fit(dataset)
worker = strategy.cluster_resolver.task_id
folder = "/shared" if worker == 0 else f"/tmp/worker-{worker}"
model.save(f"{folder}/model.keras")
""",
    sources=("https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras",),
    judge=_judge,
)
