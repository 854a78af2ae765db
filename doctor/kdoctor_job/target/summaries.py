"""Summaries for TensorBoard. Their functions are in its package, which TensorFlow 2.21 does not install any more."""

from __future__ import annotations

import functools
import linecache
import re
import traceback
from importlib.util import find_spec
from typing import Any, Optional, Tuple

from kdoctor_job.target.parts import PartError, describe

_FIX = "Install it where the job runs: python -m pip install tensorboard. Or write no summaries."
_CALLS = re.compile(r"\bsummary\.(?:audio|histogram|image|scalar|text)\(")
"""The functions of that package. The others, such as tf.summary.write, are TensorFlow's."""


def why_none() -> Optional[Tuple[str, str]]:
    """Why a summary cannot be written here, and what to do; None if it can."""
    import tensorflow as tf

    try:
        with tf.summary.record_if(False):  # noqa: FBT003 - TensorFlow's signature
            tf.summary.scalar("kdoctor", 0.0, step=0)
    except Exception as error:
        return describe(error) if find_spec("tensorboard") else "tensorboard is not installed", _FIX
    return None


def refuse_writers(part: str) -> None:
    """From now on, raise where code that calls these functions makes a writer of summaries, and none can be written.

    Its first summary is often written after the steps that run here.
    """
    import tensorflow as tf

    make = tf.summary.create_file_writer

    @functools.wraps(make)
    def checked(*arguments: Any, **named: Any) -> Any:
        files = {frame.filename for frame in traceback.extract_stack()} - {"<string>", __file__}
        found = why_none() if any(_CALLS.search("".join(linecache.getlines(file))) for file in files) else None
        if found:
            raise PartError(part, f"it writes summaries, but {found[0]}", found[1])
        return make(*arguments, **named)

    tf.summary.create_file_writer = checked
