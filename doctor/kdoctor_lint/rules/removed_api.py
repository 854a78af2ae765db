from functools import partial

from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace

_PACKAGES = {"tensorflow": "TensorFlow", "keras": "Keras"}


def _judge(trace: Trace, *, certain: bool) -> Hits:
    """What is certainly removed, or what only its name says."""
    for node, removed, fix, is_certain in trace.gone:
        if (removed.package == "keras" and trace.legacy) or is_certain() is not certain:
            continue
        if removed.name.startswith("tensorflow.compat.v1.disable") and not trace.compiled:
            continue  # a graph without Keras
        target = trace.targets.get(removed.package)
        if target is None or target >= removed.since:
            name = removed.name.replace("tensorflow.", "tf.", 1).replace(" without ", "` without `")
            since = f"{_PACKAGES[removed.package]} {'.'.join(map(str, removed.since))}"
            if certain:
                yield node, f"`{name}` does not work since {since}; use {removed.instead}", fix
            else:
                yield node, f"if this is `{name}`, it does not work since {since}; use {removed.instead}"


RULE = Rule(
    id="lint.removed-api",
    code="KD403",
    severity=Severity.ERROR,
    sources=(
        "https://keras.io/guides/migrating_to_keras_3/",
        "https://www.tensorflow.org/guide/migrate",
        "https://github.com/tensorflow/tensorflow/releases",
        MEASURED,
    ),
    judge=partial(_judge, certain=True),
    words=("tensorflow", "keras"),
    once=True,
)
NAMES = Rule(
    id="lint.removed-names",
    code="KD404",
    severity=Severity.INFO,
    sources=RULE.sources,
    judge=partial(_judge, certain=False),
    words=RULE.words,
    once=True,
)
