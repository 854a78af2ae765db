"""Which layers draw random numbers. A layer may have a generator that it does not use."""

from __future__ import annotations

from typing import Any

from helpers.cases import cases
from kdoctor_job.target.layers import is_built, random_layers


class SeedGenerator:
    """Named as in Keras 3, which has it in the layers that draw."""


class RandomGenerator:
    """Named as in Keras 2."""


class Layer:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Model:
    def __init__(self, layer: Layer) -> None:
        self._layers = [layer]

    def _flatten_layers(self, *, include_self: bool, recursive: bool) -> list[Layer]:
        assert (include_self, recursive) == (False, True)
        return self._layers


@cases(
    Layer(rate=0.5, seed_generator=SeedGenerator()),
    Layer(rate=0.5, _random_generator=RandomGenerator()),
    Layer(stddev=0.1, seed_generator=SeedGenerator()),
    Layer(dropout=0.0, recurrent_dropout=0.2, seed_generator=SeedGenerator()),
    Layer(mode="horizontal", _random_generator=RandomGenerator()),
    Layer(addition_factor=(0, 0.3), threshold_factor=(0, 0.0), generator=SeedGenerator()),
    ids=["dropout", "dropout-of-keras-2", "noise", "recurrent", "augmentation", "solarization"],
)
def test_layer_with_a_used_generator_draws(layer: Layer) -> None:
    assert random_layers(Model(layer)) == [layer]


@cases(
    Layer(rate=0, _random_generator=RandomGenerator()),
    Layer(dropout=0.0, recurrent_dropout=0.0, seed_generator=SeedGenerator()),
    Layer(dropout=0.0, _random_generator=RandomGenerator()),
    Layer(addition_factor=(0, 0.0), threshold_factor=(0, 0.0), generator=SeedGenerator()),
    Layer(rate=0.5),
    ids=["dropout-of-keras-2", "recurrent", "attention-of-keras-2", "solarization", "no-generator"],
)
def test_layer_without_randomness_does_not_draw(layer: Layer) -> None:
    assert random_layers(Model(layer)) == []


@cases(
    ({"variables": [0], "trainable_variables": [0]}, True),
    ({"variables": [0]}, False),
    ({"variables": [0], "_layers": [Layer(built=True)]}, True),
    ({"_layers": [Layer(built=True)]}, False),
    ({"built": False, "variables": [0], "trainable_variables": [0]}, False),
)
def test_model_whose_variables_come_with_the_first_batch_is_not_built(facts: dict[str, Any], expected: object) -> None:
    model = Model(Layer(built=False))
    vars(model).update({"built": True, "variables": [], "trainable_variables": [], **facts})
    assert is_built(model) is expected
