"""Jobs that write summaries for TensorBoard, with its package and without."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from kdoctor_job.target.callbacks import why_it_raises
from kdoctor_job.target.parts import PartError
from kdoctor_job.target.summaries import refuse_writers

pytestmark = pytest.mark.tensorflow


class TensorBoard:
    """As the callback of Keras is called."""


def test_summaries_need_the_package_of_tensorboard(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    import tensorflow as tf

    monkeypatch.setattr(tf.summary, "create_file_writer", tf.summary.create_file_writer)
    refuse_writers("script")
    monkeypatch.setitem(sys.modules, "tensorboard.summary.v2", None)
    found = why_it_raises(TensorBoard(), None, None)
    assert found is not None
    assert "pip install tensorboard" in found[1]
    with pytest.raises(PartError):
        tf.summary.create_file_writer(str(tmp_path))

    written = ModuleType("tensorboard.summary.v2")
    vars(written)["scalar"] = lambda **_: None
    for name in ("tensorboard", "tensorboard.summary"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, written.__name__, written)
    assert why_it_raises(TensorBoard(), None, None) is None
    assert tf.summary.create_file_writer(str(tmp_path)) is not None
