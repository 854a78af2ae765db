from dataclasses import dataclass

from helpers.cases import cases
from kdoctor.model import Status
from kdoctor.text.sanitize import clean, cleaned


@cases(
    ("a\x1b[1;31mred\x1b[0m", "ared"),
    ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
    ("a\r\nb\tc", "a\nb\tc"),
    ("\u202egnp.exe", "\\u202egnp.exe"),
    ("\udcff", "\\udcff"),
    ("Grüße ✓", "Grüße ✓"),
)
def test_control_characters_are_removed_or_escaped(text: str, shown: str) -> None:
    assert clean(text) == shown
    assert clean(shown) == shown


@dataclass(frozen=True)
class Part:
    text: str
    status: Status = Status.PASS


@dataclass(frozen=True)
class Whole:
    parts: tuple[Part, ...]
    number: int = 3


def test_nested_dataclasses_are_cleaned() -> None:
    assert cleaned(Whole(parts=(Part("\x00"),))) == Whole(parts=(Part("\\x00"),))
