from kdoctor_lint.model import Hits, Rule, Severity, Trace

_ASKS = frozenset({"jax.process_index", "jax.process_count"})
_STARTS = frozenset({"jax.distributed.initialize", "keras.distribution.initialize"})


def _judge(trace: Trace) -> Hits:
    names = {call.name for call in trace.calls}
    if "keras.distribution.set_distribution" in names and not names & _STARTS:
        for call in trace.calls:
            if call.name in _ASKS:
                yield call.node, f"`{call.name}` knows this process only, because nothing connects it to the others"
                return


_GOOD = """import jax
import keras

keras.distribution.initialize()
keras.distribution.set_distribution(keras.distribution.DataParallel())
part = examples[jax.process_index() :: jax.process_count()]
"""
RULE = Rule(
    id="lint.lone-process",
    code="KD310",
    severity=Severity.WARNING,
    title="Checks for scripts for several JAX processes that do not connect them.",
    why="""Without `keras.distribution.initialize` or `jax.distributed.initialize`, each process is alone: its index is
0 and the count is 1. Every process trains its own model on all data.""",
    fix="Call `keras.distribution.initialize()` first.",
    bad=_GOOD.replace("keras.distribution.initialize()\n", ""),
    good=_GOOD,
    sources=("https://docs.jax.dev/en/latest/multi_process.html",),
    judge=_judge,
    words=("process_",),
)
