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


def _judge_cluster(trace: Trace) -> Hits:
    for late in trace.late:
        # Without another scope it is for processes that are started later, as in notebooks.
        if late.what == "TF_CONFIG" and trace.scopes > late.before:
            yield late.node, "`TF_CONFIG` is set after the strategy has read it"


RULE = Rule(
    id="lint.late-device-config",
    code="KD306",
    severity=Severity.ERROR,
    sources=("https://www.tensorflow.org/api_docs/python/tf/config/experimental/set_memory_growth", MEASURED),
    judge=_judge,
)
CLUSTER = Rule(id="lint.late-tf-config", code="KD305", severity=Severity.ERROR, judge=_judge_cluster)
