"""Finds the exception with which a traceback ends, what it says, and where in the program it was. It is pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from kdoctor.text.sanitize import clean
from kdoctor_diagnose.line import Line, split

TITLE = "Traceback (most recent call last)"
_MOST_LINES = 400
"""Lines after the title among which its end is looked for, and lines that a message may have."""
_LONGEST = 4000
_FRAME = re.compile(r"[\s│┃╭╰|+]")
"""How each line before the exception begins: frames, code, and the box that rich draws around them."""
_NAME = r"[A-Za-z_][\w.]{1,120}"
_EXCEPTION = re.compile(rf"{_NAME}(?:: |:?$)")
_CLASS = re.compile(r"(?:Error|Exception|UnfilteredStackTrace)$")
JUPYTER = re.compile(rf"(?P<name>{_NAME}) +Traceback \(most recent call last\)")
"""IPython's title names the exception. Its frames are not indented."""
_ONE_LINE = re.compile(rf".* (?P<text>{_NAME}(?:Error|Exception)(?:: .*)?)$")
"""The end of a traceback whose lines a log of a cloud joined."""
_PLACES = (
    re.compile(r'\s*(?:[│|] *)?File ["“](?P<file>[^"”]{1,300})["”], line (?P<line>\d{1,7})'),
    re.compile(r"(?:File )?(?P<file>[\w./~\\:-]{1,300}\.py)(?::| in |, line )(?P<line>\d{1,7})"),
    re.compile(r"(?P<file>(?:Cell|Input) In ?\[\d+\])(?:, line |.*line )(?P<line>\d{1,7})"),
)
_LIBRARY = re.compile(
    r"(?:site|dist)-packages|[/\\]lib(?:64)?[/\\]python\d|[/\\]Lib[/\\]|[/\\]envs[/\\][\w.-]+[/\\]lib[/\\]|^<"
    r"|[/\\](?:tensorflow|keras|jax|torch|horovod)[/\\]|[/\\]_(?!_)\w+\.py$|__autograph_generated_file|\.pyx$"
)
"""In the paths of files that are not the program's own."""
_CAUGHT = re.compile("Exception (?:in|while|during) ")
"""How programs begin the line with which they report an exception that they caught."""
_USER_CODE = "in user code:"
"""AutoGraph writes the frames of the program and the error behind it, indented."""
_LONG_NAME = re.compile(r"^(?:tensorflow|jaxlib|keras)\.[\w.]*\.(?=\w)")
LOG_PREFIX = re.compile(
    r"^.{0,60}?[IWEF]?(?<![\w/])[\w./:\\-]{1,160}\.(?:cc|h|cu|py):\d{1,6}\] +"
    r"(?:OP_REQUIRES failed at \S{1,80} : )?(?=\S)|^.{0,400}?(?::\d+:\d+: error: |\.py:\d+: (?=\w{0,40}Warning: ))"
)
"""What glog, absl and compilers write before a message: the time and a place in the source."""
_UNFILTERED = re.compile(r"^(?:[\w.]+\.)?UnfilteredStackTrace: (?=\S)")
"""JAX raises it with another exception as its message."""
_IN_PROSE = re.compile(rf"^[^`]{{1,300}}`(?P<said>{_NAME}(?:Error|Exception): [^`]+)`.*")
_REPORTED = re.compile(r"^.*Error reported to Coordinator: <class '(?P<name>[\w.]+)'>, ")
SEPARATOR = re.compile(r"[/\\]")
_NOT_LOADED = "<class '[^']{1,200}'> could not be deserialized"
_WRAPPER = re.compile(
    rf"(?:(?:Exception encountered when|An error occurred while) calling .*|{_NOT_LOADED}.*"
    r"|.*root error\(s\) found\.?|.*:|)$"
)
"""What TensorFlow, Keras and Spark say before the message of the error that they pass on. A colon announces it."""
_SAYS_NOTHING = re.compile(r"Exception encountered|<class '|in user code|From /job|.*(?:[Ee]rror|\bfollowing\b.*):$")
"""Announcements that say nothing else."""
_NO_MESSAGE = re.compile(
    r"\s*$|\s*File \"|\s{4,}\S|\s*\^|\s*\[\[|Detected at node|Node: |Arguments received|Call arguments|\s*\u2022"
    r"|Original stack|Stack trace|\d+ (?:root|successful|derived)|Traceback|\s*-{4,}|<stack traces|The above exception"
    r"|During handling|config=|.{1,300}\.py:\d{1,7} \S+"
)
"""The other lines of such an error: places, nodes and arguments."""
_AROUND = re.compile(
    r"^Exception encountered: (?=\S)|^Error in user-defined function passed to \S+ transformation with iterator: \S+: "
    r"|^: (?=\S)|\{\{function_node .*?\}\} *| *\[Op:\w*\].*$|^ *\(\d\) [A-Z][A-Za-z_ ]{2,30}: +"
)
"""What TensorFlow writes around a message."""
_LITERAL = re.compile(r"(?:\\n|\\x1b\[[\d;]*m)+")
"""Ends of lines and colours in a message that is written as a literal."""


@dataclass(frozen=True)
class Raised:
    """The exception of a traceback."""

    place: int
    """Of its line, among the lines that were read."""
    line: Line
    text: str
    """Name and message, without what wraps them."""
    own: str | None
    """The last place in the program's own files: ``train.py:12``."""


def exception_after(title: str, lines: Sequence[bytes], first: int) -> Raised | None:
    """The exception of a traceback, among the lines of the same process.

    Args:
        title: the line ``Traceback (most recent call last):``.
        lines: lines of the log.
        first: the place of the line after the title.
    """
    head = split(title)
    joined = _ONE_LINE.match(head.text[head.text.find(TITLE) :])
    if joined:
        return _raised(first - 1, replace(head, text=joined["text"]), lines, place_before([], head.text))
    named = JUPYTER.match(head.text)
    logged = LOG_PREFIX.match(head.text)  # a program that forwards the lines of another one
    prefix = re.compile(re.sub(r"\d+", r"\\d+", re.escape(logged[0])) if logged else "^")
    own: str | None = None
    was_place = False
    for place in range(first, min(first + _MOST_LINES, len(lines))):
        line = _read(lines[place])
        line = replace(line, text=prefix.sub("", line.text))
        if line.rank != head.rank or not line.text:
            continue
        own = _own_place(line.text) or own
        is_end = _EXCEPTION.match(line.text)
        is_code = was_place and not (is_end and ": " in line.text)
        is_frame = _FRAME.match(line.text)
        was_place = not is_frame and bool(_PLACES[0].match(line.text))  # a forum dropped the indentation
        if named:
            is_end = re.match(rf"{re.escape(named['name'])}(?:: |:?$)", line.text)
        elif is_frame or was_place or is_code:
            continue
        elif not is_end:
            return None
        if is_end:
            return _raised(place, line, lines, own)
    return None


def place_before(lines: Sequence[bytes], title: str = "") -> str | None:
    """The last place in the program's own files among the frames that end a piece of a log, or joined to its title."""
    joined = (f"File {part}".encode() for part in title.split(" File ")[1:])
    frames = takewhile(
        lambda line: not line.text or _FRAME.match(line.text) or _PLACES[0].match(line.text),
        map(_read, reversed([*joined, *lines])),
    )
    return next(filter(None, (_own_place(line.text) for line in frames)), None)


def passed_on(lines: Sequence[bytes], place: int) -> Raised | None:
    """The exception on a line without a traceback before it, if its message only announces another one."""
    line = _read(lines[place])
    name, _, said = line.text.partition(": ")
    is_error = (_EXCEPTION.match(line.text.lstrip()) and _CLASS.search(name)) or _CAUGHT.match(line.text)
    is_wrapper = is_error and said and _WRAPPER.match(said)
    return _raised(place, line, lines, None) if is_wrapper else None


def message_alone(text: str) -> str:
    """What a line says that reports an error without a traceback: the exception, or the message of native code."""
    if TITLE in text:
        named = JUPYTER.search(text)
        return f"{named['name'] if named else 'Exception'}: the log ends before its message"
    text = _UNFILTERED.sub("", LOG_PREFIX.sub("", text.lstrip(" >|`*'\"").removeprefix("raise ")))
    text = _IN_PROSE.sub(r"\g<said>", text)
    text = _REPORTED.sub(lambda found: f"{found['name']}: ", text).replace(" (see above for traceback)", "")
    name, _, said = text.partition(": ")
    return f"{_LONG_NAME.sub('', name)}: {_AROUND.sub('', said)}".removesuffix(": ")


def _read(raw: bytes) -> Line:
    return split(clean(raw[:_LONGEST].decode("utf-8", "replace")))


def is_library(file: str) -> bool:
    """Whether a file is not the program's own."""
    return bool(_LIBRARY.search(file))


def _own_place(text: str) -> str | None:
    found = next(filter(None, (pattern.match(text) for pattern in _PLACES)), None)
    if found is None or is_library(found["file"]):
        return None
    return f"{SEPARATOR.split(found['file'])[-1]}:{found['line']}"


def _raised(place: int, line: Line, lines: Sequence[bytes], own: str | None) -> Raised:
    """The exception on a line. If it passes another one on, the message of that one, and where that was."""
    name, _, said = line.text.partition(": ")
    said = _AROUND.sub("", said)
    head = "" if _SAYS_NOTHING.match(said) or not said.endswith(":") else f"{said} "
    margin = line.text[: len(line.text) - len(line.text.lstrip())]
    rest = _message(line, lines, place + 1) if _WRAPPER.match(said) else iter(())
    for text in rest:
        own = _own_place(text) or own
        if not _NO_MESSAGE.match(text.removeprefix(margin)):
            said = head + _AROUND.sub("", text).strip()
            if not _WRAPPER.match(said):
                break
    inner, _, inner_said = said.partition(": ")
    if inner_said and _EXCEPTION.match(said) and _CLASS.search(inner):  # of a function that TensorFlow called
        name, said = inner, inner_said
        own = _place_of(said, rest) or own
    if said.startswith(("'", '"')) and _LITERAL.search(said):  # a KeyError writes its message, with what Keras adds
        parts = _LITERAL.split(said.strip("'\""))
        said = next((part for part in parts if not (_WRAPPER.match(part) or _NO_MESSAGE.match(part))), said)
    short = _LONG_NAME.sub("", name.strip().rstrip(":"))
    return Raised(place, line, f"{short}: {said}" if said else short, own)


def _place_of(said: str, lines: Iterable[str]) -> str | None:
    """The last place in the program's own files in the traceback that ends with a message."""
    own: str | None = None
    for text in lines:
        own = _own_place(text) or own
        if text.endswith(f": {said}"):
            return own
    return None


def _message(head: Line, lines: Sequence[bytes], first: int) -> Iterator[str]:
    """The further lines of a message, without the indentation that AutoGraph gives them."""
    is_user_code, indent = head.text.endswith(_USER_CODE), ""
    for raw in lines[first : first + _MOST_LINES]:
        line = _read(raw)
        if line.time is not None and head.time is None:
            return
        if line.rank == head.rank and line.text:
            if is_user_code:
                indent = line.text[: len(line.text) - len(line.text.lstrip())]
            text = line.text.removeprefix(indent)
            yield text
            is_user_code = text == _USER_CODE
