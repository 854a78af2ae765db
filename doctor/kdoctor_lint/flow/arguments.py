"""What a call is given."""

from __future__ import annotations

from dataclasses import dataclass

from kdoctor_lint.flow.interpreter import let_go
from kdoctor_lint.flow.values import Value


@dataclass(frozen=True)
class Arguments:
    """What a call is given."""

    args: list[Value]
    keywords: dict[str, Value]
    spread: bool
    """Whether there are further ones that are not known (``*args``, ``**kwargs``)."""

    def get(self, position: int, *names: str) -> Value | None:
        """The argument at a position or under one of the names."""
        for name in names:
            if name in self.keywords:
                return self.keywords[name]
        return self.args[position] if 0 <= position < len(self.args) else None

    def let_go(self) -> None:
        """They go to code that this file does not show."""
        for value in (*self.args, *self.keywords.values()):
            let_go(value)
