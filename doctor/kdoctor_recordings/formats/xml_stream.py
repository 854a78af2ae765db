"""Reads XML as a stream of elements, so that the complete part of a truncated file can be used."""

from collections.abc import Callable
from xml.parsers import expat

from kdoctor.errors import UsageError
from kdoctor_recordings.formats.part import Section

_MAX_DEPTH = 64
"""Levels of elements. nvidia-smi writes nine."""


def read_elements(
    section: Section,
    *,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None],
    text: Callable[[str], None] | None = None,
    last_tag: str,
) -> tuple[str, ...]:
    """Call the functions for each element, and return notes for the user.

    The document type is never fetched. A document that declares entities is refused: nvidia-smi declares none.

    Args:
        section: the document.
        start: takes the name and the attributes of an element that begins.
        end: takes the name of an element that ends.
        text: takes pieces of text between tags.
        last_tag: the closing tag of the document; what follows is ignored.

    Raises:
        UsageError: it declares entities, or is nested too deeply.
    """
    depth = 0

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MAX_DEPTH:
            raise UsageError(f"{section.file}: the XML is nested too deeply (more than {_MAX_DEPTH} levels)")
        start(name, attributes)

    def finish(name: str) -> None:
        nonlocal depth
        depth -= 1
        end(name)

    def refuse(*_: object) -> None:
        raise UsageError(f"{section.file}: the XML declares entities, which is not supported")

    parser = expat.ParserCreate()
    parser.StartElementHandler = begin
    parser.EndElementHandler = finish
    parser.CharacterDataHandler = text
    parser.EntityDeclHandler = refuse
    document, tag, _ = "\n".join(section.lines).strip().partition(last_tag)
    try:
        parser.Parse(document + tag, True)  # noqa: FBT003 - marks the last piece
    except expat.ExpatError as error:
        return (f"{section.file}: the XML is incomplete or invalid from line {error.lineno} on; the rest was ignored",)
    return ()
