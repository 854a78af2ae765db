"""Every optimizer that Keras ships. Measures: see ``kdoctor_target.training.optimizers``."""

from __future__ import annotations

from kdoctor_target.training.families import OPTIMIZERS
from kdoctor_target.training.optimizers import cases_of, compare_state

CASES = cases_of(compare_state, OPTIMIZERS)
