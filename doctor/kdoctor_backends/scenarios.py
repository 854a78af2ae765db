"""The trainings on other backends than TensorFlow."""

from kdoctor_backends.jax_scenarios import ON_JAX
from kdoctor_backends.torch_scenarios import ON_TORCH

SCENARIOS = (*ON_JAX, *ON_TORCH)
"""Offered by the entry point ``kdoctor.scenarios``."""
CASES = {check: cases for scenario in SCENARIOS for check, cases in scenario.judged_by.items()}
"""The cases of each check."""
