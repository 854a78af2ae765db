"""XML is read as far as it is complete."""

import pytest

from kdoctor.errors import UsageError
from kdoctor_recordings.formats.part import Part, Section
from kdoctor_recordings.formats.smi_xml import parse


def part(*lines: str) -> Part:
    """What is read from these lines."""
    return parse(Section(kind="nvidia-smi -q -x", file="f", lines=lines, whole=True, ended=True))


def test_what_follows_the_last_tag_is_ignored() -> None:
    log = "<nvidia_smi_log><attached_gpus>2</attached_gpus></nvidia_smi_log>"
    assert part("", f" {log}", "<b>", "</nvidia_smi_log>").driver == {"count": 2}


@pytest.mark.parametrize(("lines", "number"), [(("<a>", "<b>"), 2), (("<a>", "<b></c>", "</a>"), 2), (("<a",), 1)])
def test_note_names_the_line_from_which_xml_is_not_valid(lines: tuple[str, ...], number: int) -> None:
    assert [f"line {number} " in note for note in part(*lines).notes] == [True]


@pytest.mark.parametrize(("depth", "is_read"), [(64, True), (65, False)])
def test_levels_of_elements_are_bounded(depth: int, *, is_read: bool) -> None:
    text = "<nvidia_smi_log>" + "<b>" * (depth - 1) + "</b>" * (depth - 1) + "</nvidia_smi_log>"
    if is_read:
        assert part(text).notes == ()
        assert part("<nvidia_smi_log>" + "<b></b>" * 2 * depth + "</nvidia_smi_log>").notes == ()
    else:
        with pytest.raises(UsageError, match="64 levels"):
            part(text)
