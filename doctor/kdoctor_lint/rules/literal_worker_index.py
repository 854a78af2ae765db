import ast
import re
from collections.abc import Sequence

from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._batches import has_workers

_TF_CONFIG = re.compile(r"environ\['TF_CONFIG'\]$")


def _judge(trace: Trace) -> Hits:
    if not any(map(has_workers, trace.strategies)):
        return
    nodes = [node for statement in trace.body for node in ast.walk(statement)]
    for node in nodes:
        if isinstance(node, ast.Assign) and any(map(_TF_CONFIG.search, map(ast.unparse, node.targets))):
            shown = _index(_literal(node.value, nodes))
            if shown is not None:
                yield node, f"every process of this script is worker {shown}"


def _literal(value: ast.expr, nodes: Sequence[ast.AST]) -> ast.expr | None:
    """The dictionary in ``json.dumps(...)``, unless the script changes it."""
    given = value.args[0] if isinstance(value, ast.Call) and value.args else value
    if not isinstance(given, ast.Name):
        return given
    changes = (node for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store))
    if any(part.id == given.id for node in changes for part in ast.walk(node) if isinstance(part, ast.Name)):
        return None
    assigned = [
        node.value for node in nodes if isinstance(node, ast.Assign) and given.id in map(ast.unparse, node.targets)
    ]
    return assigned[0] if len(assigned) == 1 else None


def _index(config: ast.expr | None) -> int | None:
    workers, index = _at(_at(config, "cluster"), "worker"), _at(_at(config, "task"), "index")
    several = isinstance(workers, ast.List) and len(workers.elts) > 1
    return index.value if several and isinstance(index, ast.Constant) and isinstance(index.value, int) else None


def _at(node: ast.expr | None, key: str) -> ast.expr | None:
    if not isinstance(node, ast.Dict):
        return None
    pairs = zip(node.keys, node.values, strict=True)
    return next((value for name, value in pairs if isinstance(name, ast.Constant) and name.value == key), None)


_BAD = """import json
import os

import tensorflow as tf

os.environ["TF_CONFIG"] = json.dumps(
    {"cluster": {"worker": ["node0:2222", "node1:2222"]}, "task": {"type": "worker", "index": 0}}
)
strategy = tf.distribute.MultiWorkerMirroredStrategy()
"""
RULE = Rule(
    id="lint.literal-worker-index",
    code="KD309",
    severity=Severity.INFO,
    title="Checks for `TF_CONFIG` with the index of the worker written in the script.",
    why="""Each worker needs its own index. With a number in the script, every worker that runs the script as it is
claims to be the same one, and all wait for the others. A copy of the script for each worker drifts apart.""",
    fix="Set `TF_CONFIG` in the job script, or read the index from the environment.",
    bad=_BAD,
    good=_BAD.replace('"index": 0', '"index": int(os.environ["RANK"])'),
    sources=("https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras",),
    judge=_judge,
)
