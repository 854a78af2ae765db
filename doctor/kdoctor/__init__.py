"""Checks whether a machine and its Python environment are ready for a multi-GPU Keras job."""
# It imports nothing from elsewhere at first, not even __future__: `python -m kdoctor` runs it before the working
# directory is removed from the path, where files could replace modules.

from kdoctor.version import __version__

__all__ = ["__version__"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name: str) -> "Any":
    """Import what extensions offer to users of the package on first use, so that ``import kdoctor`` is cheap.

    Python's random numbers stay as they are: rich draws one when it is imported.
    """
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import random  # noqa: PLC0415 - importing kdoctor is cheap

    from kdoctor.plugins.installed import load, named  # noqa: PLC0415 - see above

    offered = named("api")
    if name not in offered:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    state = random.getstate()
    try:
        return load(offered[name])
    finally:
        random.setstate(state)


def __dir__() -> list[str]:
    """What completion in a notebook offers."""
    from kdoctor.plugins.installed import named  # noqa: PLC0415 - see above

    return ["__version__", *named("api")]
