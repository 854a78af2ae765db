from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.names import Kind, kind_of

_INITIALIZE = frozenset({"jax.distributed.initialize", "keras.distribution.initialize"})
_COUNTS = frozenset({"jax.process_index", "jax.process_count"})


def _judge(trace: Trace) -> Hits:
    names = {call.name for call in trace.calls}
    distributes = any(late.what.startswith("keras.distribution") for late in trace.late)
    # Code of another library may initialize it.
    if distributes and not names & _INITIALIZE and not any(kind_of(name) is Kind.UNKNOWN for name in names):
        for call in [call for call in trace.calls if call.name in _COUNTS][:1]:
            yield call.node, f"`{call.name}` counts processes, but `jax.distributed` is never initialized"


RULE = Rule(
    id="lint.jax-not-initialized",
    code="KD310",
    severity=Severity.WARNING,
    judge=_judge,
    words=("process_index", "process_count"),
)
