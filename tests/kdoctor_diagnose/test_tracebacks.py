"""The exception with which a traceback ends, in the forms in which tracebacks are printed."""

from helpers.cases import cases
from kdoctor_diagnose.tracebacks import exception_after

TITLE = "Traceback (most recent call last):"
FRAMES = (b'  File "a.py", line 3, in <module>', b"    f()", b"    ^^^")


@cases(
    (TITLE, [*FRAMES, b"mine.Late: x", b"other.Late: y"], 3),
    (TITLE, [*FRAMES, b"  [Previous line repeated 3 more times]", b"mine.Late"], 4),
    (TITLE, [*FRAMES, b"", b"mine.Late:"], 4),
    (f"[rank1]: {TITLE}", [b"[rank1]:   File x", b"other.Late: y", b"[rank1]: mine.Late: x"], 2),
    (
        f"\u256d\u2500 {TITLE} \u2500\u256e",
        ["\u2502 f() \u2502".encode(), "\u2570\u2500\u256f".encode(), b"mine.Late: x"],
        2,
    ),
    (f"  + {TITLE}", [b"  |   File x", b"  | f()", b"mine.Late: x"], 2),
    (f"mine.Late    {TITLE[:-1]}", [b"Cell In[3], line 1", b"----> 1 f()", b"other.Late: y", b"mine.Late: x"], 3),
    (TITLE, [*FRAMES], None),
    (TITLE, [*FRAMES, b"Epoch 1/2", b"mine.Late: x"], None),
    (TITLE, [b"  File x"] * 500 + [b"mine.Late: x"], None),
)
def test_exception_is_the_first_line_that_is_not_a_frame(title: str, lines: list[bytes], place: int | None) -> None:
    found = exception_after(title, lines, 0)
    assert (found and found[0]) == place
