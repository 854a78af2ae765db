"""A defect of Keras on JAX over several devices is detected by the case that is about it, and by no other."""

from dataclasses import replace
from pathlib import Path

import pytest

from helpers import smoke
from kdoctor_backends.checks.smoke.data_parallel_features import data_parallel_features
from kdoctor_backends.scenarios import ON_JAX

pytestmark = pytest.mark.smoke_full

DEFECTS = {
    **smoke.ignored_options("keras.distribution.distribution() is None"),
    "metrics-of-classes": """
plain = keras.metrics.F1Score.result

def smaller(self):
    return plain(self) * (1.0 if keras.distribution.distribution() is None else 0.9)

keras.metrics.F1Score.result = smaller
""",
    "run-eagerly": """
plain = keras.Model.train_step

def smaller(self, state, data):
    if self.run_eagerly and keras.distribution.distribution() is not None:
        data = (0.9 * data[0], *data[1:])
    return plain(self, state, data)

keras.Model.train_step = smaller
""",
}
TRAINED = (*DEFECTS, "momentum", "adam", "rmsprop", "metrics")


@pytest.mark.parametrize("name", DEFECTS)
def test_defect_is_detected_by_the_case_about_it(name: str, tmp_path: Path) -> None:
    (scenario,) = [replace(one, cases=TRAINED) for one in ON_JAX if one.id == data_parallel_features.scenario]
    code = f"import keras\n{DEFECTS[name]}"
    assert smoke.findings_with(tmp_path, code, scenario, data_parallel_features, ("jax", "keras")) == {name}
