"""A defect of Keras on torch over two ranks is detected by the case that is about it, and by no other."""

from dataclasses import replace
from pathlib import Path

import pytest

from helpers import smoke
from helpers.kdoctor_backends.torch import torch_python
from kdoctor_backends.checks.smoke.torch_data_parallel import torch_data_parallel
from kdoctor_backends.scenarios import ON_TORCH

pytestmark = pytest.mark.torch

DEFECTS = {
    "nesterov": """
plain = torch.optim.SGD.__init__

def ignoring(self, *args, nesterov=False, **named):
    plain(self, *args, nesterov=nesterov and not torch.distributed.is_initialized(), **named)

torch.optim.SGD.__init__ = ignoring
""",
    "keras-adam": """
plain = keras.optimizers.Optimizer._get_current_learning_rate

def slow(self):
    is_planted = isinstance(self, keras.optimizers.Adam) and torch.distributed.is_initialized()
    return plain(self) * (0.9 if is_planted else 1.0)

keras.optimizers.Optimizer._get_current_learning_rate = slow
""",
    "keras-clipping": """
plain = keras.optimizers.Optimizer._clip_gradients

def ignoring(self, gradients):
    return gradients if torch.distributed.is_initialized() else plain(self, gradients)

keras.optimizers.Optimizer._clip_gradients = ignoring
""",
    "metrics-of-classes": """
plain = keras.metrics.F1Score.update_state

def deaf(self, y_true, y_pred, sample_weight=None):
    heard = not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0
    plain(self, y_true if heard else 0 * y_true, y_pred, sample_weight)

keras.metrics.F1Score.update_state = deaf
""",
}
TRAINED = (*DEFECTS, "ddp", "adam", "clipping")


@pytest.mark.parametrize("name", DEFECTS)
def test_defect_is_detected_by_the_case_about_it(name: str, tmp_path: Path) -> None:
    (scenario,) = [replace(one, cases=TRAINED) for one in ON_TORCH]
    code = f"import keras\nimport torch\nimport torch.distributed\n{DEFECTS[name]}"
    found = smoke.findings_with(tmp_path, code, scenario, torch_data_parallel, ("torch", "keras"), torch_python())
    assert found == {name}
