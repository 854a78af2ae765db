"""Checks whether a machine and its Python environment are ready for a multi-GPU Keras job."""
# It imports nothing from elsewhere at first, not even __future__: `python -m kdoctor` runs it before the working
# directory is removed from the path, where files could replace modules.

from kdoctor.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kdoctor.api.preflight import Preflight, PreflightError, guard, preflight
    from kdoctor.api.watch.callback import Watch, WatchError

__all__ = ["Preflight", "PreflightError", "Watch", "WatchError", "__version__", "guard", "preflight"]


def __getattr__(name: str) -> "Any":
    """Import the API on first use, so that ``import kdoctor`` is cheap.

    Python's random numbers stay as they are: rich draws one when it is imported.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "watch.callback" if name.startswith("Watch") else "preflight"
    import importlib  # noqa: PLC0415 - see above
    import random  # noqa: PLC0415 - importing kdoctor is cheap

    state = random.getstate()
    try:
        return getattr(importlib.import_module(f"kdoctor.api.{module}"), name)
    finally:
        random.setstate(state)
