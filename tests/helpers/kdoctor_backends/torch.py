"""The interpreter with torch that the tests of Keras on torch use."""

import os

import pytest


def torch_python() -> str:
    """The interpreter in KDOCTOR_TORCH_PYTHON; skips the test if there is none."""
    found = os.environ.get("KDOCTOR_TORCH_PYTHON")
    if not found:
        pytest.skip("KDOCTOR_TORCH_PYTHON is not set: make test-torch sets it")
    return found
