"""Small changes of a module's code, each of which a test should notice."""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div, ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.Pow: ast.Mult,
}  # fmt: skip
_FUNCTIONS = {"any": "all", "all": "any", "min": "max", "max": "min"}
_STRENGTHENING = {"strict", "frozen", "kw_only", "encoding"}
"""Keywords with which the code states what it assumes about itself. Nothing depends on them in a correct program."""

Make = Callable[[], "ast.AST | None"]


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One change of one module."""

    path: str
    """Relative to the repository."""
    number: int
    """Its place among the changes of the module."""
    line: int
    change: str
    function: str | None
    """The outermost function or method that it is in; None for code that runs at import."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.change}"


def mutants(source: str, path: str) -> list[Mutant]:
    """Every change of a module."""
    walker = _Walker(None)
    walker.visit(ast.parse(source))
    return [
        Mutant(path=path, number=number, line=line, change=change, function=function)
        for number, (line, change, function) in enumerate(walker.offers)
    ]


def mutate(source: str, number: int) -> ast.Module:
    """The module with that change."""
    tree = _Walker(number).visit(ast.parse(source))
    assert isinstance(tree, ast.Module)
    return ast.fix_missing_locations(tree)


class _Walker(ast.NodeTransformer):
    """Counts the changes in the order of the source, and makes one of them."""

    def __init__(self, wanted: int | None) -> None:
        self.offers: list[tuple[int, str, str | None]] = []
        self._wanted = wanted
        self._scopes: list[str] = []
        self._function: str | None = None

    def _offer(self, node: ast.AST, change: str, make: Make) -> ast.AST | None:
        """Count a change; the changed node if it is the wanted one, or else the node."""
        made = make() if len(self.offers) == self._wanted else node
        self.offers.append((getattr(node, "lineno", 0), change, self._function))
        return made

    # What is not changed: annotations, docstrings, assertions, and rows of tables, which repeat their source.

    def visit_Module(self, node: ast.Module) -> ast.AST:
        node.body = self._block(node.body)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._scopes.append(node.name)
        node.body = self._block(node.body)
        self._scopes.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.args.defaults = [self.visit(item) for item in node.args.defaults]
        node.args.kw_defaults = [item and self.visit(item) for item in node.args.kw_defaults]
        node.decorator_list = [self.visit(item) for item in node.decorator_list]
        outer = self._function
        self._scopes.append(node.name)
        self._function = outer or ".".join(self._scopes)
        node.body = self._block(node.body)
        self._function = outer
        self._scopes.pop()
        return node

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [self.visit(item) for item in body]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.value = node.value and self.visit(node.value)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return node

    def visit_Import(self, node: ast.Import) -> ast.AST:
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        node.value = self.visit(node.value)  # not the format
        return node

    def _table(self, node: ast.AST) -> ast.AST:
        return self.generic_visit(node) if self._function else node

    visit_Dict = visit_List = visit_Set = visit_Tuple = _table  # noqa: N815 - names of ast

    def visit_Raise(self, node: ast.Raise) -> ast.AST | None:
        return self._offer(node, "raise removed", lambda: _nothing(node)) if self._function else node

    # What is changed.

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        if isinstance(node.value, ast.Constant):
            return node
        if self._function is None:
            return self.generic_visit(node)
        if isinstance(node.value, ast.Yield | ast.YieldFrom):
            # An empty `yield from` keeps the function a generator.
            empty = ast.Expr(ast.YieldFrom(ast.Tuple(elts=[], ctx=ast.Load())))
            kind = "yield from" if isinstance(node.value, ast.YieldFrom) else "yield"
            made = self._offer(node, f"{kind} removed", lambda: ast.copy_location(empty, node))
        else:
            made = self._offer(node, "call removed", lambda: _nothing(node))
        return self.generic_visit(node) if made is node else made

    def visit_Return(self, node: ast.Return) -> ast.AST | None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            nothing = ast.copy_location(ast.Return(ast.Constant(None)), node)
            if self._offer(node, "return None", lambda: nothing) is nothing:
                return nothing
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        for place, operator in enumerate(node.ops):
            other = _COMPARISONS[type(operator)]
            changed = copy.deepcopy(node)
            changed.ops[place] = other()
            made = self._offer(node, f"{_name(operator)} to {_name(other())}", lambda changed=changed: changed)  # type: ignore[misc]
            if made is changed:
                return changed
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        other, words = (ast.Or, "and to or") if isinstance(node.op, ast.And) else (ast.And, "or to and")
        changed = ast.copy_location(ast.BoolOp(op=other(), values=node.values), node)
        if self._offer(node, words, lambda: changed) is changed:
            return changed
        for place in range(len(node.values)):
            kept = node.values[:place] + node.values[place + 1 :]
            shorter = kept[0] if len(kept) == 1 else ast.copy_location(ast.BoolOp(op=node.op, values=kept), node)
            if self._offer(node, f"operand {place + 1} removed", lambda shorter=shorter: shorter) is shorter:  # type: ignore[misc]
                return shorter
        return self.generic_visit(node)

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        """Leave out what a list, tuple or call takes over from elsewhere."""
        if not self._function or not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        empty = ast.copy_location(ast.Starred(ast.Tuple(elts=[], ctx=ast.Load()), ast.Load()), node)
        return empty if self._offer(node, "group removed", lambda: empty) is empty else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Exchange the first two arguments, which are often of one kind."""
        names = [ast.dump(one) for one in node.args[:2] if isinstance(one, ast.Name | ast.Attribute)]
        if self._function and len(set(names)) == 2:
            first, second, *others = node.args
            changed = ast.copy_location(ast.Call(node.func, [second, first, *others], node.keywords), node)
            if self._offer(node, "arguments exchanged", lambda: changed) is changed:
                return changed
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, ast.Not) and self._offer(node, "not removed", lambda: node.operand) is node.operand:
            return node.operand
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        other = _OPERATORS.get(type(node.op))
        if other and (self._function or not isinstance(node.op, ast.BitOr)):
            changed = ast.copy_location(ast.BinOp(left=node.left, op=other(), right=node.right), node)
            if self._offer(node, f"{_name(node.op)} to {_name(other())}", lambda: changed) is changed:
                return changed
        return self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        other = _OPERATORS.get(type(node.op))
        if other:
            changed = ast.copy_location(ast.AugAssign(target=node.target, op=other(), value=node.value), node)
            if self._offer(node, f"{_name(node.op)}= to {_name(other())}=", lambda: changed) is changed:
                return changed
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        self._negate(node)
        node.body, node.orelse = self._block(node.body), self._block(node.orelse)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self._negate(node)
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node.iter = self.visit(node.iter)
        for place, test in enumerate(node.ifs):
            if self._offer(test, "filter removed", lambda: None) is None:
                del node.ifs[place]
                return node
            node.ifs[place] = self._negated(test)
        return node

    def _negate(self, node: ast.If | ast.IfExp) -> None:
        node.test = self._negated(node.test)

    def _negated(self, test: ast.expr) -> ast.expr:
        if isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp):
            return self.visit(test)  # type: ignore[no-any-return]
        changed = ast.copy_location(ast.UnaryOp(ast.Not(), test), test)
        return changed if self._offer(test, "condition negated", lambda: changed) is changed else self.visit(test)

    def visit_Continue(self, node: ast.Continue) -> ast.AST | None:
        return self._offer(node, "continue to break", lambda: ast.copy_location(ast.Break(), node))

    def visit_Break(self, node: ast.Break) -> ast.AST | None:
        return self._offer(node, "break to continue", lambda: ast.copy_location(ast.Continue(), node))

    def visit_Constant(self, node: ast.Constant) -> ast.AST | None:
        value = node.value
        if isinstance(value, bool):
            return self._offer(
                node, f"{value} to {not value}", lambda: ast.copy_location(ast.Constant(not value), node)
            )
        if isinstance(value, int | float):
            other = value + 1 if isinstance(value, int) else value * 2 or 1.0
            return self._offer(node, f"{value} to {other}", lambda: ast.copy_location(ast.Constant(other), node))
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST | None:
        other = _FUNCTIONS.get(node.id)
        if other and isinstance(node.ctx, ast.Load):
            return self._offer(
                node, f"{node.id} to {other}", lambda: ast.copy_location(ast.Name(other, ast.Load()), node)
            )
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        return node if node.arg in _STRENGTHENING else self.generic_visit(node)


def _nothing(node: ast.stmt) -> ast.Pass:
    return ast.copy_location(ast.Pass(), node)


def _name(operator: ast.AST) -> str:
    return {
        "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "Eq": "==", "NotEq": "!=", "Is": "is", "IsNot": "is not",
        "In": "in", "NotIn": "not in", "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%",
        "BitOr": "|", "BitAnd": "&", "Pow": "**",
    }[type(operator).__name__]  # fmt: skip


def lines_of(source: str) -> Iterator[tuple[str, int, int]]:
    """Each outermost function or method, with its first line, decorators included, and its last one."""

    def walk(body: list[ast.stmt], scopes: tuple[str, ...]) -> Iterator[tuple[str, int, int]]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from walk(node.body, (*scopes, node.name))
            elif isinstance(node, ast.FunctionDef):
                first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
                yield ".".join((*scopes, node.name)), first, node.end_lineno or first
            elif isinstance(node, ast.If):
                yield from walk([*node.body, *node.orelse], scopes)

    yield from walk(ast.parse(source).body, ())
