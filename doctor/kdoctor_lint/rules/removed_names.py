from functools import partial

from kdoctor_lint.model import Rule, Severity
from kdoctor_lint.rules import removed_api

RULE = Rule(
    id="lint.removed-names",
    code="KD404",
    severity=Severity.INFO,
    title="Checks for methods named like those that Keras or TensorFlow has removed, of objects of unknown classes.",
    fix="See where the object is created. If that is Keras or TensorFlow, use the replacement that the message names.",
    sources=removed_api.RULE.sources,
    judge=partial(removed_api.judge, certain=False),
    words=removed_api.RULE.words,
    once=True,
)
