"""Diagnose a training log of 100 MB. ``write`` makes the log first; ``grep_errors.py`` is the yardstick."""

import random
import sys
from pathlib import Path

BYTES = 100 * 1024**2
OTHERS = (
    "{0}/1251 ━━━━━━━━━━━━━━━━━━━━ 4:0{1} 231ms/step - accuracy: 0.7{0} - loss: 1.2{0}",
    "I1122 10:11:12.{0} {0} trainer.py:{0}] step {0}: loss 0.{0}, {1}.{0} images/s, read /data/{0:x}/{0}.tfrecord",
    "2026-03-02 08:00:{1}1.{0}: I tensorflow/core/common_runtime/gpu/gpu_device.cc:2019] device {0} with {0} MB",
    "node{1}:2211:{0} [{1}] NCCL INFO Channel 0{1}/02 : {0}[{1}] -> {0}[{1}] via P2P/CUMEM",
    "DEBUG:data:file {0:x}{0:o} has {0} examples of shape ({0}, 224, 224, {1}) from host-{0:x}",
    "WARNING:root:skipped {0} of {0} records of shard {0:x}",
)


def write(path: Path) -> None:
    """Write a log with progress bars, lines of several programs and, at the end, a failure."""
    if path.exists() and path.stat().st_size >= BYTES:
        return
    numbers = random.Random(1)  # noqa: S311 - nothing secret
    length = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        while length < BYTES:
            text = numbers.choice(OTHERS).format(numbers.randrange(10**6), numbers.randrange(9))
            length += file.write(f"{text}\n")
        file.write("RuntimeError: Mixing different tf.distribute.Strategy objects: one is not the other\n")


write(Path(sys.argv[1]))
