"""Applies edits to source code through LibCST, which keeps everything else byte for byte. Edits fit their nodes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from kdoctor_lint.edits import Cast, Change, Edit, Ending, Import, Keywords, Method, Name

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
        self._has_comment = False
        """Whether the current statement has a comment, which must not be lost with it."""

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        comments = [line.comment for line in node.leading_lines] + [node.trailing_whitespace.comment]
        self._has_comment = any(comments) or len(node.body) > 1

    def _edit_of(self, node: cst.CSTNode) -> Edit | None:
        found: CodeRange | None = self._ranges.get(node)
        if found is None:
            return None
        return self._edits.get(((found.start.line, found.start.column), (found.end.line, found.end.column)))

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        edit = self._edit_of(original_node)
        changed = _OF_CALLS[type(edit)](updated_node, edit) if type(edit) in _OF_CALLS else updated_node
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

    def leave_ImportFrom(
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> cst.ImportFrom | cst.RemovalSentinel:
        if isinstance(original_node.names, cst.ImportStar):
            return updated_node
        names: list[cst.ImportAlias] = []
        module = updated_node.module
        for alias in original_node.names:
            edit = self._edit_of(alias)
            name = alias.name.value if isinstance(alias.name, cst.Name) else ""
            if not isinstance(edit, Import) or not name:
                names.append(alias)
                continue
            self.count += 1
            if edit.module:
                found = cst.parse_expression(edit.module)
                module = found if isinstance(found, cst.Name | cst.Attribute) else module
                asname = alias.asname or (cst.AsName(cst.Name(name)) if name != edit.name else None)
                names.append(alias.with_changes(name=cst.Name(edit.name), asname=asname))
        if not names:
            return updated_node if self._has_comment else cst.RemoveFromParent()
        if len(names) < len(original_node.names):
            names[-1] = names[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return updated_node.with_changes(module=module, names=names)


def _keywords(node: cst.Call, edit: Keywords) -> cst.Call:
    args = _changed(node.args, edit.changes)
    return node if _loses_comment(node.args, edit.changes) else node.with_changes(args=_ended_alike(node, args))


def _changed(args: Sequence[cst.Arg], changes: Mapping[str, Change]) -> list[cst.Arg]:
    changed: list[cst.Arg] = []
    for arg in args:
        change = changes.get(arg.keyword.value) if arg.keyword else None
        if change is None:
            changed.append(arg)
        elif change.name:
            value = cst.parse_expression(change.value) if change.value else arg.value
            changed.append(arg.with_changes(keyword=cst.Name(change.name), value=value))
    return changed


def _loses_comment(before: Sequence[cst.Arg], changes: Mapping[str, Change]) -> bool:
    """Whether a comment is next to an argument that is removed."""
    names = {name for name, change in changes.items() if not change.name}
    removed = [arg.keyword is not None and arg.keyword.value in names for arg in before]
    near = [arg for arg, gone in zip(before, removed, strict=True) if gone]
    if removed and removed[-1]:
        near += [arg for arg, gone in zip(before, removed, strict=True) if not gone][-1:]
    return any("#" in cst.Module([]).code_for_node(arg) for arg in near)


def _ended_alike(node: cst.Call, args: list[cst.Arg]) -> list[cst.Arg]:
    """The last argument ends as the last one did before, and so do the spaces before the parenthesis."""
    if args and node.args and args[-1] is not node.args[-1]:
        last = node.args[-1]
        args[-1] = args[-1].with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    return args


def _method(node: Any, edit: Method) -> Any:
    named: list[cst.Arg] = []
    for number, arg in enumerate(node.args):
        parameter = edit.parameters[number - 1] if edit.parameters and number and not arg.keyword else None
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        named.append(arg.with_changes(keyword=cst.Name(parameter), equal=equal) if parameter else arg)
    args = _changed(named, edit.keywords)
    if _loses_comment(named, edit.keywords):
        return node
    args = _ended_alike(node, args)
    return node.with_changes(func=node.func.with_changes(attr=cst.Name(edit.name)), args=args)


def _cast(node: Any, edit: Cast) -> Any:
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    dtype = cst.Arg(cst.Attribute(node.func.value, cst.Name(edit.dtype)))
    given = node.args[0]
    dtype = dtype.with_changes(whitespace_after_arg=given.whitespace_after_arg)
    args = [given.with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace("")), dtype]
    return node.with_changes(func=node.func.with_changes(attr=cst.Name("cast")), args=args)


def _ending(node: cst.Call, edit: Ending) -> cst.Call:
    args = list(node.args)
    for number, arg in enumerate(args):
        is_path = arg.keyword.value == edit.keyword if arg.keyword else not number
        if is_path and isinstance(arg.value, cst.SimpleString):
            text = arg.value
            path = edit.changed(text.raw_value)
            changed = text.with_changes(value=f"{text.prefix}{text.quote}{path}{text.quote}")
            args[number] = arg.with_changes(value=changed)
            return node.with_changes(args=args)
    return node


_OF_CALLS: Mapping[type, Callable[[cst.Call, Any], cst.Call]] = {
    Keywords: _keywords,
    Method: _method,
    Cast: _cast,
    Ending: _ending,
}
