"""XML is read as far as it is complete."""

import pytest

from kdoctor.errors import UsageError
from kdoctor_recordings.formats.part import Section
from kdoctor_recordings.formats.xml_stream import read_elements


def events(*lines: str) -> tuple[list[str], tuple[str, ...]]:
    """The elements as they begin and end with the text between them, and the notes."""
    found: list[str] = []
    section = Section(kind="nvidia-smi -q -x", file="f", lines=lines, whole=True, ended=True)
    notes = read_elements(
        section,
        start=lambda name, attributes: found.append(f"+{name}{attributes.get('at', '')}"),
        end=lambda name: found.append(f"-{name}"),
        text=found.append,
        last_tag="</a>",
    )
    return found, notes


def test_elements_are_reported_in_order() -> None:
    assert events('<a><b at="1">text</b></a>') == (["+a", "+b1", "text", "-b", "-a"], ())


def test_what_follows_the_last_tag_is_ignored() -> None:
    assert events("", " <a></a>", "<b>", "</a>") == (["+a", "-a"], ())


@pytest.mark.parametrize(("lines", "number"), [(("<a>", "<b>"), 2), (("<a>", "<b></c>", "</a>"), 2), (("<a",), 1)])
def test_note_names_the_line_from_which_xml_is_not_valid(lines: tuple[str, ...], number: int) -> None:
    found, notes = events(*lines)
    assert found[:1] == (["+a"] if lines != ("<a",) else [])
    assert [f"line {number} " in note for note in notes] == [True]


@pytest.mark.parametrize(("depth", "is_read"), [(64, True), (65, False)])
def test_levels_of_elements_are_bounded(depth: int, *, is_read: bool) -> None:
    text = "<a>" + "<b>" * (depth - 1) + "</b>" * (depth - 1) + "</a>"
    if is_read:
        assert len(events(text)[0]) == 2 * depth
        assert len(events("<a>" + "<b></b>" * 2 * depth + "</a>")[0]) == 4 * depth + 2
    else:
        with pytest.raises(UsageError, match="64 levels"):
            events(text)
