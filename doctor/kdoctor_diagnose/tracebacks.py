"""Finds the exception with which a traceback ends, what it says, and where in the program it was. It is pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice, takewhile

from kdoctor.text.sanitize import clean
from kdoctor_diagnose.line import Line, fields_of, split

TITLE = "Traceback (most recent call last)"
EXIT_CODE = re.compile(r"(?i)^.{0,60}\bexit(?:ed)?(?: with)? (?:exit )?(?:code|status) [1-9]\d*\.?$")
"""A line with which a launcher or an editor ends a log."""
_MOST_LINES = 400
"""Lines after the title among which its end is looked for, and lines that a message may have."""
_LONGEST, _MOST_OPEN = 4000, 8
"""Characters of a line, and lines among which the bracket is closed with which a message begins."""
_FRAME = re.compile(r"[\s│┃╭╰|+^~]")
"""How each line before the exception begins: frames, code, and the box that rich draws around them."""
_NAME = r"[A-Za-z_][\w.]{1,120}"
_EXCEPTION = re.compile(rf"{_NAME}: |(?:[A-Z]\w{{1,120}}|[A-Za-z_]\w{{0,60}}\.[\w.]{{1,120}}):?$")
"""Without a message it is the name of a class. A line that a terminal wrapped goes on with any other word."""
_INDENTED = re.compile(rf"[\s\u2502|]+(?P<text>{_NAME}(?:Error|Exception): .*)")
"""The end of a traceback that a forum, a logger or an ExceptionGroup indented."""
_WIDE = 70
"""From how many characters on a terminal may have wrapped a line."""
_CLASS = re.compile(r"(?:Error|Exception|UnfilteredStackTrace)$")
JUPYTER = re.compile(rf"(?P<name>{_NAME})(?:(?:(?<=Error)|(?<=Exception)) *|  +)Traceback \(most recent call last\)")
"""IPython's title names the exception. Its frames are not indented."""
_ONE_LINE = re.compile(rf".* (?P<text>{_NAME}(?:Error|Exception)(?:: .*)?)$")
"""The end of a traceback whose lines a log of a cloud joined."""
_PLACES = (
    re.compile(r'\s*(?:[│|] *)?File ["“](?P<file>[^"”]{1,300})["”], line (?P<line>\d{1,7})'),
    re.compile(r"\s*(?:File )?(?P<file>[\w./~\\:-]{1,300}\.py)(?::| in |, line )(?P<line>\d{1,7})"),
    re.compile(r"(?:File )?(?P<file>(?:Cell|Input) In ?\[\d+\]|<command-\d+>)(?:, line |.*line )(?P<line>\d{1,7})"),
)
_HEADER = re.compile(
    r"(?:<(?:ipython-input|command)-(?P<cell>\d+)[\w-]*>|(?P<file>[\w./~\\: -]{1,300}\.pyc?)) in (?!\d)"
)
_ARROW = re.compile(r"-{1,5}> ?(?P<line>\d{1,7})\b")
"""How IPython wrote a file or cell before release 8, and below it the line in it."""
_BETWEEN = re.compile(rf"{_FRAME.pattern}|{_ARROW.pattern}|\d+ frames$")
"""What is between the names of files in a traceback."""
_LINK = re.compile(r"^\[(?P<text>[^\]]{1,300})\]\(https?://[^)\s]{1,300}\)")
"""A file in a traceback that was copied from Colab."""
_DEBUGGER = re.compile(r".{0,2}xception has occurred: (?P<name>[\w.]{2,120})")
"""How the debugger of VS Code begins. The message and the frames, the innermost first, are on the next lines."""
_LIBRARY = re.compile(
    r"(?:site|dist)-packages|[/\\]lib(?:64)?[/\\]python\d|[/\\]Lib[/\\]|[/\\]envs[/\\][\w.-]+[/\\]lib[/\\]|^<(?!command)"
    r"|(?i:conda\d?|python[\d.]*)[/\\]lib[/\\]|[/\\]bin[/\\][\w-]+$|[/\\]\.?py(?:charm_helpers|dev)[/\\]"
    r"|[/\\](?:jax|torch|horovod|kdoctor_job|pyspark|databricks|tensorflow[/\\](?:python|core|compiler))[/\\]"
    r"|[/\\]keras[/\\](?:keras|src|engine|utils|layers|models|backend|legacy|saving|callbacks|preprocessing|optimizers)[/\\]"
    r"|[/\\]_(?!_)\w+\.py$|__autograph_generated_file|\.p[xy][xid]$"
)
is_library = _LIBRARY.search
"""Whether a file is not the program's own, by its path."""
_CAUGHT = re.compile("Exception (?:in|while|during) ")
"""How programs begin the line with which they report an exception that they caught."""
_USER_CODE = ("in user code:", "in converted code:")
"""AutoGraph writes the frames of the program and the error behind it, indented."""
_LONG_NAME = re.compile(r"^(?:tensorflow|jaxlib|keras)\.[\w.]*\.(?=\w)")
LOG_PREFIX = re.compile(
    r"^.{0,60}?[IWEF]?(?<![\w/])[\w./:\\-]{1,160}\.(?:cc|h|cu|py):\d{1,6}\] *"
    r"(?:OP_REQUIRES failed at \S{1,80} : |\w{1,40}::StartAbort )?(?=\S)"
    r"|^.{0,400}?(?::\d+:\d+: error: |\.py:\d+: (?=\w{0,40}Warning: ))"
)
"""What glog, absl and compilers write before a message: the time and a place in the source."""
_QUOTED = re.compile(
    r"^(?:[ >|`*'\"]|E {2})*"
    r"(?:raise |\(\d\) |(?:.* of '[\w:]+' +)?what\(\): +|(?:[\w.]+\.)?UnfilteredStackTrace: (?=\S))?"
)
"""What pytest, Markdown, code, a list of errors, C++ and JAX have before an exception."""
_IN_PROSE = re.compile(rf"^[^`]{{1,300}}`(?P<said>{_NAME}(?:Error|Exception): [^`]+)`.*")
_REPORTED = re.compile(r"^.*Error reported to Coordinator: <class '(?P<name>[\w.]+)'>, ")
SEPARATOR = re.compile(r"[/\\]")
_NOT_LOADED = "<class '[^']{1,200}'> could not be deserialized"
_WRAPPER = re.compile(
    rf"(?:(?:Exception encountered when|An error occurred while) calling .*|{_NOT_LOADED}.*"
    r"|.*root error\(s\) found\.?|.* Summarized data: b''|.*:|)$"
)
"""What TensorFlow, Keras and Spark say before the message of the error that they pass on. A colon announces it."""
_SAYS_NOTHING = re.compile(
    r"Exception encountered|<class '|in (?:user|converted) code|From /job|.*(?:[Ee]rror|\bfollowing\b.*):$"
)
"""Announcements that say nothing else."""
NO_MESSAGE = re.compile(
    r"\s*$|\s*File \"|\s{4,}\S|\s*\^|\s*\[\[|Detected at node|Node: |Arguments received|Call arguments|\s*\u2022"
    r"|Original stack|Stack trace|\d+ (?:root|successful|derived)|Traceback|\s*-{4,}|<stack traces|The above exception"
    r"|During handling|config=|.{1,300}(?:\.py|>):\d{1,7} \S+"
)
"""The other lines of such an error: places, nodes and arguments."""
_NODE = re.compile(r"\s*(?P<text>(?:Detected at node|Node:) ['\"]?[\w./]{1,200})")
_AROUND = re.compile(
    r"^Exception encountered: (?=\S)|^Error in user-defined function passed to \S+ transformation with iterator: \S+: "
    r"|^: (?=\S)|\{\{function_node .*?\}\} *|<unknown>:\d+: error: loc.*?\)+: | *\[Op:\w*\].*$"
    r"|^ *\(\d\) [A-Z][A-Za-z_ ]{2,30}: +"
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
    file: str = ""
    """Where it was raised, of the program or of a library."""


class Frames:
    """The places that a traceback names."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self.own: str | None = None
        """The last one in the program's own files."""
        self.file = ""
        """The file of the last one."""
        self._header = ""
        for line in lines:
            self.read(line)

    def read(self, text: str) -> bool:
        """Whether a line belongs to a frame, whose place is kept."""
        text = _LINK.sub(r"\g<text>", text)
        found = next(filter(None, (pattern.match(text) for pattern in _PLACES)), None)
        header = None if found else _HEADER.match(text)
        if header:
            self._header = header["file"] or f"Input In [{header['cell']}]"
        arrow = self._header and not header and _ARROW.match(text)
        place = found or arrow
        if not place:
            return header is not None
        self.file = found["file"] if found else self._header
        if not is_library(self.file):
            self.own = f"{SEPARATOR.split(self.file)[-1]}:{place['line']}"
        return True


def exception_after(title: str, lines: Sequence[bytes], first: int) -> Raised:
    """The exception of a traceback, among the lines of the same process after its title; without a text if cut."""
    fields = fields_of(title).values() if title.startswith("{") else ()
    stack = next((text for text in fields if isinstance(text, str) and f"{TITLE}:\n" in text), None)
    if stack is not None:
        inner = stack[stack.find(TITLE) :].encode().split(b"\n")
        return replace(exception_after(TITLE, inner, 1), place=first - 1)
    head = split(title)
    joined = _ONE_LINE.match(head.text[head.text.find(TITLE) :])
    frames = Frames(f"File {part}" for part in head.text.split(" File ")[1:])
    if joined:
        return _raised(first - 1, replace(head, text=joined["text"]), lines, frames)
    named = JUPYTER.match(head.text)
    prefix = _prefix(head.text, lines[first : first + 1])
    ending = re.compile(rf"{re.escape(named['name'])}(?:: |:?$)") if named else _EXCEPTION
    was_place, before, widest = False, 0, _WIDE
    for place, line in _lines_of(head, lines, first):
        text = prefix.sub("", line.text)
        indented = None if named else _INDENTED.match(text)
        if indented:
            return _raised(place, replace(line, text=indented["text"]), lines, frames)
        frames.read(text)
        is_end = ending.match(text)
        is_code = was_place and not (is_end and ": " in text)
        is_frame = named or _FRAME.match(text)
        was_place = not is_frame and bool(_PLACES[0].match(text))  # a forum dropped the indentation
        if is_end and (named or not (is_frame or is_code)):
            return _raised(place, replace(line, text=text), lines, frames)
        if not (is_frame or was_place or is_code or before >= widest):
            break
        before, widest = len(text), max(widest, len(text))
    return Raised(first - 1, head, "", frames.own)


def _lines_of(head: Line, lines: Sequence[bytes], first: int) -> Iterator[tuple[int, Line]]:
    """The lines that a process wrote after another one, and their places."""
    for place in range(first, min(first + _MOST_LINES, len(lines))):
        line = _read(lines[place])
        if line.rank == head.rank and line.text:
            yield place, line


def _prefix(title: str, following: Sequence[bytes]) -> re.Pattern[str]:
    """What a program that forwards the lines of another one writes before each of them."""
    before = re.compile(re.sub(r"\d+", r"\\d+", re.escape(title[: title.find(TITLE)])))
    return before if all(before.match(_read(raw).text) for raw in following) else re.compile("")


def frames_before(lines: Sequence[bytes]) -> Frames:
    """The frames that end a piece of a log."""
    tail = takewhile(
        lambda line: not line.text or _BETWEEN.match(line.text) or Frames().read(line.text), map(_read, reversed(lines))
    )
    return Frames(line.text for line in reversed([*tail]))


def passed_on(lines: Sequence[bytes], place: int) -> Raised | None:
    """The exception on a line without a traceback before it, if its message only announces another one."""
    line = _read(lines[place])
    debugger = _DEBUGGER.match(line.text)
    if debugger:
        rest = [_read(raw).text for raw in lines[place + 1 : place + _MOST_LINES]]
        inner = takewhile(lambda text: text.startswith("  "), rest[1:])
        own = next((frames.own for frames in (Frames([text]) for text in inner) if frames.own), None)
        return Raised(place, line, f"{debugger['name']}: {''.join(rest[:1])}", own)
    name, _, said = line.text.partition(": ")
    is_error = (_EXCEPTION.match(line.text.lstrip()) and _CLASS.search(name)) or _CAUGHT.match(line.text)
    is_wrapper = is_error and said and _WRAPPER.match(said)
    return (
        _raised(place, line, lines, frames_before(lines[max(0, place - _MOST_LINES) : place])) if is_wrapper else None
    )


def message_alone(text: str) -> str:
    """What a line says that reports an error without a traceback: the exception, or the message of native code."""
    if TITLE in text or text.lstrip().startswith('File "'):
        named = JUPYTER.search(text)
        return f"{named['name'] if named else 'Exception'}: the log ends before its message"
    text = LOG_PREFIX.sub("", _QUOTED.sub("", text))
    text = _IN_PROSE.sub(r"\g<said>", text)
    text = _REPORTED.sub(lambda found: f"{found['name']}: ", text).replace(" (see above for traceback)", "")
    name, _, said = text.partition(": ")
    return unquoted(f"{_LONG_NAME.sub('', name)}: {_AROUND.sub('', said)}".removesuffix(": "))


def _read(raw: bytes) -> Line:
    line = split(clean(raw[:_LONGEST].decode("utf-8", "replace")))
    return replace(line, text=line.text.strip("*")) if "**" in line.text else line


def _raised(place: int, line: Line, lines: Sequence[bytes], frames: Frames) -> Raised:
    """The exception on a line. If it passes another one on, the message of that one, and where that was."""
    name, _, said = line.text.partition(": ")
    said = _AROUND.sub("", said)
    head = "" if _SAYS_NOTHING.match(said) or not said.endswith(":") else f"{said} "
    margin = line.text[: len(line.text) - len(line.text.lstrip())]
    rest = _message(line, lines, place + 1) if _WRAPPER.match(said) and (said or line.text.endswith(":")) else iter(())
    node = None
    for text in rest:
        frames.read(text)
        node = node or _NODE.match(text)
        if not NO_MESSAGE.match(text.removeprefix(margin)):
            said = head + _AROUND.sub("", text).strip()
            if not _WRAPPER.match(said):
                break
    if node and _WRAPPER.match(said):
        said = f"{said} {node['text']}"
    inner, _, inner_said = said.partition(": ")
    if inner_said and _EXCEPTION.match(said) and _CLASS.search(inner):  # of a function that TensorFlow called
        name, said = inner, inner_said
        frames.own = Frames(takewhile(lambda text: not text.endswith(f": {said}"), rest)).own or frames.own
    if _is_open(said):
        parts = [said, *islice(_message(line, lines, place + 1), _MOST_OPEN)]
        longer = [*accumulate(parts, lambda head, part: f"{head} {part.strip()}")]
        said = next((text for text in longer if not _is_open(text)), longer[-1] if len(parts) <= _MOST_OPEN else said)
    if said.startswith(("'", '"')) and _LITERAL.search(said):  # a KeyError writes its message, with what Keras adds
        parts = _LITERAL.split(said.strip("'\""))
        said = next((part for part in parts if not (_WRAPPER.match(part) or NO_MESSAGE.match(part))), said)
    short = _LONG_NAME.sub("", name.strip().rstrip(":"))
    return Raised(place, line, unquoted(f"{short}: {said}" if said else short), frames.own, frames.file)


def _is_open(text: str) -> bool:
    return sum(map(text.count, "([{")) > sum(map(text.count, ")]}"))


def unquoted(text: str) -> str:
    """A message without the end of a quotation in Markdown whose beginning is elsewhere."""
    return text.rstrip("`*") if text.count("`") % 2 or text.endswith("**") else text


def _message(head: Line, lines: Sequence[bytes], first: int) -> Iterator[str]:
    """The further lines of a message, without the indentation that AutoGraph gives them."""
    is_user_code, indent = head.text.endswith(_USER_CODE), ""
    for _, line in _lines_of(head, lines, first):
        if line.time is not None and head.time is None:
            return
        if is_user_code:
            indent = line.text[: len(line.text) - len(line.text.lstrip())]
        text = line.text.removeprefix(indent)
        yield text
        is_user_code = text in _USER_CODE
