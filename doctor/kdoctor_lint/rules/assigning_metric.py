import ast
from collections.abc import Iterator

from kdoctor_lint.flow.environment import Function
from kdoctor_lint.flow.values import Metric
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._keras_features import is_mirrored, on_keras_3


@on_keras_3
def _judge(trace: Trace) -> Hits:
    for event in trace.compiled:
        for metric in event.metrics if is_mirrored(event.home) else ():
            for node in _assigned(metric):
                yield node, "each replica assigns the state, and the metric is the sum of all replicas"


def _assigned(metric: Metric) -> Iterator[ast.AST]:
    """Where ``update_state`` assigns a variable something else than the variable with something added."""
    member = metric.cls.member("update_state") if metric.cls else None
    nodes = list(ast.walk(member.node)) if isinstance(member, Function) else []
    values = {ast.unparse(node.targets[0]): node.value for node in nodes if isinstance(node, ast.Assign)}
    for node in nodes:
        called = ast.unparse(node.func) if isinstance(node, ast.Call) and len(node.args) == 1 else ""
        if isinstance(node, ast.Call) and called.startswith("self.") and called.endswith(".assign"):
            value = values.get(ast.unparse(node.args[0]), node.args[0])
            added = (
                ast.unparse(value.func).endswith("add") if isinstance(value, ast.Call) else isinstance(value, ast.BinOp)
            )
            if not isinstance(value, ast.Constant) and not (added and called[:-7] in ast.unparse(value)):
                yield node


RULE = Rule(id="lint.assigning-metric", code="KD509", severity=Severity.ERROR, judge=_judge)
