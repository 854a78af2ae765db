from kdoctor_lint.model import Hits, Rule, Severity, Trace


def _judge(trace: Trace) -> Hits:
    for late in trace.late:
        # Without another scope it is for processes that are started later, as in notebooks.
        if late.what == "TF_CONFIG" and trace.scopes > late.before:
            yield late.node, "`TF_CONFIG` is set after the strategy has read it"


RULE = Rule(id="lint.late-tf-config", code="KD305", severity=Severity.ERROR, judge=_judge)
