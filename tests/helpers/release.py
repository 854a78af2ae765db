"""The programs in the folder ``.github/release``."""

import importlib.util
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[2] / ".github" / "release"


def load(name: str) -> ModuleType:
    """A program as a module."""
    spec = importlib.util.spec_from_file_location(f"release_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
