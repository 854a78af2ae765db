"""Commands whose options are all plain text or switches, and so need no conversion.

Typer converts every value with pydantic, even that of a ``--help`` that nobody gave, and importing pydantic takes as
long as all that ``kdoctor matrix`` does.
"""

from __future__ import annotations

import shlex
from typing import Any

from typer.core import TyperCommand, TyperGroup

from kdoctor.errors import UsageError


def _without_conversion(option: Any) -> Any:
    """The option ``--help``, whose absence is False instead of something to convert."""
    if option is not None and option.default is None:
        option.default = False
    return option


class PlainGroup(TyperGroup):
    """The root: its own options are switches."""

    def get_help_option(self, ctx: Any) -> Any:
        """The option ``--help``."""
        return _without_conversion(super().get_help_option(ctx))


class PlainCommand(TyperCommand):
    """Takes its options as they stand: text, or lists of text.

    Whatever is out of the ordinary (``--help``, an argument too many or missing) is left to typer.
    """

    def get_help_option(self, ctx: Any) -> Any:
        """The option ``--help``."""
        return _without_conversion(super().get_help_option(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Fill the context's parameters."""
        values, rest, _ = self.make_parser(ctx).parse_args(args=list(args))
        parameters = self.get_params(ctx)
        is_missing = any(parameter.required and not values.get(str(parameter.name)) for parameter in parameters)
        if rest or is_missing or values.get("help"):
            return super().parse_args(ctx, args)
        for parameter in parameters:
            if parameter.name and parameter.expose_value:
                given = values.get(parameter.name)
                ctx.params[parameter.name] = (
                    given if isinstance(given, (str, list, tuple)) else parameter.get_default(ctx)
                )
        ctx.args = rest
        return rest


class ByChecklist(TyperCommand):
    """A command whose checklist is an option: whoever names it without is told how."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Fill the context's parameters.

        Raises:
            UsageError: something stands there that is no option.
        """
        values, rest, _ = self.make_parser(ctx).parse_args(args=list(args))
        if rest and not values.get("help"):
            raise UsageError(
                f"{' '.join(rest)}: this command takes options only",
                hint=f"A checklist is named with: {ctx.command_path} --checklist {shlex.quote(rest[0])}",
            )
        return super().parse_args(ctx, args)
