"""Which variables are others after a job goes on."""

from pathlib import Path

import numpy as np
import pytest

from kdoctor_job.target.states import apart


def test_large_change_of_one_kind_does_not_hide_a_difference_of_another() -> None:
    before = {"dense/kernel": np.zeros(2), "model/best": np.array(1e9)}
    wanted = {"dense/kernel": np.ones(2), "model/best": np.array(2.0)}
    assert apart(before, wanted, wanted, wanted) == []
    assert apart(before, wanted, wanted, {**wanted, "dense/kernel": np.full(2, 1.5)}) == ["dense/kernel"]


@pytest.mark.tensorflow
@pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")  # of Keras
def test_variable_without_a_path_has_one_name_before_saving_and_after_loading(tmp_path: Path) -> None:
    import keras
    import tensorflow as tf

    from kdoctor_job.target.states import state_of

    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        model.compile(keras.optimizers.Nadam(), "mse")
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    model.save(tmp_path / "a.keras")
    loaded = keras.models.load_model(tmp_path / "a.keras")
    assert "nadam/variable" in state_of(model).keys() & state_of(loaded).keys()
