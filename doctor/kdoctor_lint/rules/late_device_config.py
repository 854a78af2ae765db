from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace


def _judge(trace: Trace) -> Hits:
    for late in trace.late:
        if late.what.startswith("tf."):
            yield late.node, f"`{late.what}` fails after a strategy was created"
        elif late.what.startswith("keras."):
            if any(event.model is model for event in trace.fitted[late.before :] for model in late.models):
                yield late.node, "distribution is set after the model was built, so its variables are not distributed"
        elif late.what != "TF_CONFIG":
            yield late.node, f"`{late.what}` has no effect after a strategy was created"


RULE = Rule(
    id="lint.late-device-config",
    code="KD306",
    severity=Severity.ERROR,
    sources=("https://www.tensorflow.org/api_docs/python/tf/config/experimental/set_memory_growth", MEASURED),
    judge=_judge,
)
