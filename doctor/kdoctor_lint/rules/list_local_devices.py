"""The rule lint.list-local-devices."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.model import Severity
from kdoctor_lint.flow.trace import Trace
from kdoctor_lint.model import Hit, Rule
from kdoctor_lint.names import LIST_LOCAL_DEVICES


def _judge(trace: Trace) -> Iterator[Hit]:
    for called in trace.calls:
        if LIST_LOCAL_DEVICES.match(called.name):
            yield Hit(node=called.node, message="list_local_devices initialises every GPU of the machine")


RULE = Rule(
    id="lint.list-local-devices",
    severity=Severity.WARNING,
    title="Devices are counted with tf.config, not with device_lib.list_local_devices.",
    why="""list_local_devices starts a session of its own on every GPU: it takes their memory before the
training does, and after it the devices can no longer be configured (memory growth, logical devices). It is no
public API, either.""",
    bad="""from tensorflow.python.client import device_lib

gpus = [device.name for device in device_lib.list_local_devices() if device.device_type == "GPU"]
""",
    good="""import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
""",
    sources=("https://www.tensorflow.org/guide/gpu", "https://www.tensorflow.org/guide/versions"),
    judge=_judge,
)
