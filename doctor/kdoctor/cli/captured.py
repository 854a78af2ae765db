"""Runs a command of kdoctor in this process and takes what it prints."""

import contextlib
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from kdoctor.documents import Document
from kdoctor.errors import UsageError

Found = TypeVar("Found", bound=Document)


def document_of(kind: type[Found], *arguments: str) -> Found:
    """The document that a command prints."""
    return kind.model_validate_json(text_of(*arguments))


def text_of(*arguments: str) -> str:
    """What a command prints. The exit code is part of the documents.

    Raises:
        UsageError: the command ended with an error.
    """
    app: Callable[..., Any] = sys.modules["kdoctor.cli"].app
    with _captured(("kdoctor", *arguments)) as taken:
        try:
            app(args=list(arguments), standalone_mode=False)
        except SystemExit as ended:
            if not taken.getvalue():
                raise UsageError(f"kdoctor {arguments[0]} ended with status {ended.code}") from None
        text = taken.getvalue().decode("utf-8")
    if not text:
        raise UsageError(f"kdoctor {arguments[0]} printed nothing")
    return text


@contextlib.contextmanager
def _captured(argv: Sequence[str]) -> Iterator[io.BytesIO]:
    """Standard output of the command, which is the protocol's otherwise."""
    taken = io.BytesIO()
    stream = io.TextIOWrapper(taken, encoding="utf-8", write_through=True)
    before = sys.argv
    sys.argv = list(argv)
    try:
        with contextlib.redirect_stdout(stream):
            yield taken
    finally:
        sys.argv = before
        stream.detach()
