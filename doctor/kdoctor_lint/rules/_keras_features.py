"""What the rules share about features that Keras 3 gets wrong on several replicas."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import wraps

from kdoctor_lint.flow.values import Strategy, Text
from kdoctor_lint.model import Hits, Trace

KERAS_3 = (3, 0)
MEASURED_FROM, MEASURED_TO = (3, 10), (3, 15)
"""The oldest and the newest release of Keras that was measured. All releases in between that were measured agree."""
OLDEST = (3, 2)  # The oldest release that was measured for features that were wrong before, too
_MEASURED_KINDS = frozenset({"MirroredStrategy"})


def on_keras_3(judge: Callable[..., Hits]) -> Callable[..., Hits]:
    """The judge, for scripts for Keras 3 on TensorFlow only."""

    @wraps(judge)
    def judge_keras_3(trace: Trace, **options: str) -> Hits:
        return judge(trace, **options) if _uses_keras_3(trace) else iter(())

    return judge_keras_3


def _uses_keras_3(trace: Trace) -> bool:
    backend = trace.environment.get("KERAS_BACKEND")
    elsewhere = backend is not None and not (isinstance(backend, Text) and backend.value == "tensorflow")
    return not trace.legacy and not elsewhere and trace.targets.get("keras", MEASURED_TO) >= KERAS_3


def is_mirrored(strategy: Strategy | None, kinds: AbstractSet[str] = _MEASURED_KINDS) -> bool:
    """Whether a strategy is of a kind that was measured, at least in one branch of the script."""
    return strategy is not None and bool(strategy.kinds & kinds)


def releases(trace: Trace, oldest: tuple[int, int] = MEASURED_FROM) -> str:
    """The releases of Keras that this holds for, to end a message with."""
    target = trace.targets.get("keras", MEASURED_TO)
    unmeasured = "" if oldest <= target <= MEASURED_TO else f"; Keras {_release(target)} was not measured"
    return f" (Keras {_release(oldest)} to {_release(MEASURED_TO)}{unmeasured})"


def _release(numbers: tuple[int, int]) -> str:
    return ".".join(map(str, numbers))
