"""Applies edits to source code through LibCST, which keeps everything else byte for byte. Edits fit their nodes."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from kdoctor_lint.edits import REMOVE, Called, Edit, Name

Position = tuple[int, int]


class Placed(NamedTuple):
    """An edit of the node between two positions. Lines count from 1, columns from 0, in characters."""

    start: Position
    end: Position
    edit: Edit


def rewrite(code: str, edits: Sequence[Placed]) -> tuple[str, int]:
    """The code with the edits that could be applied, and their number."""
    module = cst.parse_module(code)
    if module.code != code:
        return code, 0
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    editor = _Editor(wrapper.resolve(PositionProvider), {(item.start, item.end): item.edit for item in edits})
    changed = wrapper.module.visit(editor)
    return changed.code, editor.count


class _Editor(cst.CSTTransformer):
    def __init__(self, ranges: Mapping[cst.CSTNode, Any], edits: Mapping[tuple[Position, Position], Edit]) -> None:
        super().__init__()
        self.count = 0
        self._ranges = ranges
        self._edits = edits

    def _edit_of(self, node: cst.CSTNode) -> Edit | None:
        found: CodeRange | None = self._ranges.get(node)
        if found is None:
            return None
        return self._edits.get(((found.start.line, found.start.column), (found.end.line, found.end.column)))

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        edit = self._edit_of(original_node)
        changed = _called(updated_node, edit) if isinstance(edit, Called) else updated_node
        self.count += changed is not updated_node
        return changed

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> Any:
        edit = self._edit_of(original_node)
        if not isinstance(edit, Name):
            return updated_node
        base: Any = updated_node
        for _ in edit.old:
            base = base.value
        for part in edit.new:
            base = cst.Attribute(base, cst.Name(part))
        self.count += 1
        if isinstance(base, cst.Attribute) and len(edit.old) == len(edit.new) == 1:
            return updated_node.with_changes(attr=base.attr)
        parentheses = {"lpar": [*updated_node.lpar, *base.lpar], "rpar": [*base.rpar, *updated_node.rpar]}
        return base.with_changes(**parentheses)


def _called(node: cst.Call, edit: Called) -> cst.Call:
    names = [edit.keywords.get(arg.keyword.value) if arg.keyword else None for arg in node.args]
    if REMOVE in names and "#" in cst.Module([]).code_for_node(node):
        return node  # the comment may be about an argument that is removed
    args = [
        arg.with_changes(keyword=cst.Name(name)) if name else arg
        for arg, name in zip(node.args, names, strict=True)
        if name != REMOVE
    ]
    if args and names[-1] == REMOVE:  # the end of the last argument stays
        last = node.args[-1]
        args[-1] = args[-1].with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    func = node.func
    if edit.name and isinstance(func, cst.Attribute):
        func = func.with_changes(attr=cst.Name(edit.name))
    return node.with_changes(func=func, args=args)
