"""Jobs that write summaries for TensorBoard, with its package and without."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kdoctor_job.target.callbacks import why_it_raises
from kdoctor_job.target.parts import PartError
from kdoctor_job.target.summaries import refuse_writers

pytestmark = pytest.mark.tensorflow


class TensorBoard:
    """As the callback of Keras is called."""


def test_summaries_need_the_package_of_tensorboard(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import tensorflow as tf

    writes, others = tmp_path / "writes.py", tmp_path / "others.py"
    for file, function in ((writes, "scalar"), (others, "write")):
        made = f"import tensorflow as tf\ntf.summary.create_file_writer({str(tmp_path)!r})\n"
        file.write_text(f"{made}def log(loss):\n    tf.summary.{function}('loss', loss)\n")
    monkeypatch.setattr(tf.summary, "create_file_writer", tf.summary.create_file_writer)
    refuse_writers("script")
    refuse_writers("script")  # as if another script ran before
    monkeypatch.setitem(sys.modules, "tensorboard.summary.v2", None)
    found = why_it_raises(TensorBoard(), None, None)
    assert found is not None
    assert "pip install tensorboard" in found[1]
    runpy.run_path(str(others))
    with pytest.raises(PartError):
        runpy.run_path(str(writes))

    written = ModuleType("tensorboard.summary.v2")
    vars(written)["scalar"] = lambda **_: None
    for name in ("tensorboard", "tensorboard.summary"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, written.__name__, written)
    assert why_it_raises(TensorBoard(), None, None) is None
    runpy.run_path(str(writes))
