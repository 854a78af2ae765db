"""Restores output from what people paste: without prefixes, marks and notes, and with its own lines."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import unescape
from itertools import groupby

from kdoctor.probes.kernel_lines import ESCAPES, is_kernels
from kdoctor_recordings.formats import (
    dcgm_table,
    diagnostics,
    lsmod,
    lspci,
    messages,
    proc_version,
    smi_csv,
    smi_failure,
    smi_nvlink,
    smi_topo,
    unindented,
)
from kdoctor_recordings.formats.part import Kind

_QUOTED = 0.9
"""The share of lines that have a prefix."""
_FEW = 8
_COMMENT = 3
"""Lines of a comment that may have output."""
_TYPED = re.compile(r"^(.{,80}\bnvidia-smi(?: [\w-]+)*) {3,}(?=\S)", re.MULTILINE)
"""A command before the first line of its output."""
_CHARACTERS = str.maketrans(
    "\u00a0\u2007\u202f\u2002\u2003\u2009\u2018\u2019\u201c\u201d│║╞╡╠╣─━═├┤┬┴┼╒╕╘╛╤╧╪┌┐└┘╭╮╰╯",
    "      ''\"\"||||||--=" + 20 * "+",
)
"""Spaces and quotation marks of word processors, and frames of tables, which nvitop draws like nvidia-smi's."""
_VALUE = re.compile(r'"([A-Z][\w :]*)"\s*:\s*\{\s*"value"\s*:\s*"([^"]*)"\s*\}')
"""A row of ``dcgmi health`` as JSON."""
_NOTE = re.compile(
    r"(?<![ \t])[ \t]+(?:<(?:[-=]{2,}|[-=]+ )|[\u2190\u21d0\u27f5]).*$|(?<!\*)\*\*(?=[^\s*])|(?<=[^\s*])\*\*(?!\*)",
    re.MULTILINE,
)
"""A note behind a value (``Yes  <== here``), and the marks of bold type."""
_UNIT = re.compile(r"(\bnvidia-\w+\.service)( - .*\n(?:.*\n){,5}?)[> ]*(?=Active: )")
"""The head of systemctl status: its state does not name the service."""
_STAT = re.compile(r"^\[(\d+)\] ([^|\n]+?) *\| *(\d+)\W{0,2}C, *(\d+ %).*?\| *(\d+) / (\d+) MB.*$", re.MULTILINE)
_OF_STAT = "index, name, temperature.gpu, utilization.gpu, memory.used, memory.total"
"""A line of gpustat, and its columns."""
FENCE = re.compile(r"\s*(?:```|~~~)[\w-]*\s*")
_ENDS = re.compile(r"(?:(?<=[\s|:>\]])|(?<=[+\"'`\]]))(?=\S)")
"""Where something before a line may end."""
_HOST = re.compile(r"[A-Za-z][\w.-]*: ?")
"""What pdsh and its kin write before each line."""
_REACH = 100
_TRIED = 300
"""Characters and lines in which the end of a prefix is searched."""
_JOINED = 60
"""Characters that several lines have at least."""
_BREAK = re.compile(r"\\r?\\n|\\n")
_TAG = re.compile(r"</?(?:p|pre|code|span|div|strong|em|details|summary|br)(?: [^<>\n]*)?/?>")
_BOOT = r"\[ *\d+\.\d{6}\] |\[\w{1,5}\.? +\w{2,5}\.? +\d+ [\d:]{8} \d{4}\] "
_JOINTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf" (?={_BOOT})",
        r" (?=\w{3} +\d+ [\d:]{8} \S+ kernel: )",
        r"(?<![\]:]) (?=NVRM: )",
        r" (?=GPU \d+: [^\n:(]+ \(UUID: GPU-[\da-f-]{36}\))",
        r" (?=Link \d+: (?:[\d.]+ GB/s|<?inactive))",
        r"(?<=\S) +(?=GPU0\s+GPU1\b|(?:GPU|NIC)\d+\s+(?:X|NV\d+|PIX|PXB|PHB|NODE|SYS|OK|CNS|GNS|TNS|NS)\s|Legend:)",
        r" (?=(?:[\da-f]{4}:)?[\da-f]{2}:[\da-f]{2}\.[0-7] [A-Z\d][\w/ -]{,40}(?: \[\w{4}\])?: )",
        r" (?=Bus: primary|(?:Subsystem|NUMA node|IOMMU group|Capabilities|Kernel \w[ \w]{,20}): )",
        r" (?=(?:Lnk(?:Cap|Sta)\d?|(?:Dev|UE|CE)Sta|ACSC\w+): )",
    )
)
"""Where a line of a log, a list or a matrix begins that a web page, or a sentence, has as one line."""
_BORDERS = re.compile(r"[|+] [|+][-=]{5,}.*[-=][|+] [|+]")
_ROW_END = re.compile(r"(?<=[^|\s+] [|+]) (?=[|+])|(?<=[-=][|+]) (?=[|+])| (?=\+--)")
"""The same of a table: behind a border, or a cell that is not empty."""
_ROW_WIDTH = 58
"""Characters that a wrapped row of a table has at least."""
_WIDTHS = range(60, 133)
"""Of terminals and mails, which wrap longer lines."""
_UNDERLINE = re.compile(r"\s*\|?(?:\s*:?-{2,}:?\s*\|)+\s*(?::?-{2,}:?)?\s*")
"""The line below the header of a table in Markdown."""
_QUOTE = re.compile(r"^(?: {0,3}(?=>)|[ \t]*(?!>))(?P<mark>>|#|//|[;*%])(?: ?(?P=mark))* ?(?=\s|$|[\w|+\[<=])")
"""The marks of a quotation in a mail, or of a comment in code."""
LONGEST_LINE = 100_000
"""Characters of a line. Longer lines are not part of a dump, except for XML without line ends."""

_QUERY = re.compile(r"=+NVSMI LOG=+\s*|GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]\s*")
XML = re.compile(r"(?<!\s)\s*<(?:\?xml|!DOCTYPE nvidia_smi_log|nvidia_smi_log>)")
_ELEMENT = re.compile(r"\s*</?[a-z_]")
_LONG_NUMBER = re.compile(r"\d{30,}")
"""Longer than any value of a machine. Python refuses to read thousands of digits."""
MATRIX = re.compile(r"\s*GPU\d+(?:\s+(?:GPU\d+|NIC\d+|[a-z]+\d*_\w+))*(?:\s+CPU Affinity.*)?\s*$")

BEGINNINGS: tuple[tuple[Kind, Callable[[str], object]], ...] = (
    ("nvidia-smi -q", _QUERY.fullmatch),
    (
        "nvidia-smi",
        re.compile(r"\|\s*NVIDIA-SMI \d|\|?\s*NVITOP \d|\|\s*(?:MIG devices|(?:GPU|Compute) instances):").match,
    ),
    ("nvidia-smi nvlink -s", smi_nvlink.BEGINS.fullmatch),
    ("/proc/driver/nvidia/version", re.compile(re.escape(proc_version.START)).match),
    ("lsmod", lsmod.begins),
    ("nvidia-smi's failure", smi_failure.START.match),
    ("lspci -vvv", lspci.begins),
    ("dcgmi diag's table", dcgm_table.begins),
)
"""The first line of a dump. Kinds that also need the next lines are recognized in :class:`_Splitter`."""
_FIRST_LINES: tuple[Callable[[str], object], ...] = (XML.match, smi_csv.begins, *(begins for _, begins in BEGINNINGS))


def plain(text: str) -> str:
    """The text without what is not output: escapes, marks of bold type, unusual spaces, notes behind a value."""
    text = _LONG_NUMBER.sub("(a number of too many digits)", ESCAPES.sub("", text))
    if not XML.search(text) and _TAG.search(text):
        text = unescape(_TAG.sub("", re.sub(r"<br ?/?>(?!\n)", "\n", text)))
    if any(text.count(mark) > text.count(unescape(mark)) for mark in ("&lt;", "&gt;", "&nbsp;")):
        text = unescape(text)
    if not diagnostics.IS_DCGM.search(text):
        text = "\n".join(map(_separated, text.split("\n")))
    text = _TYPED.sub(r"\1\n", text.replace("\r\n", "\n").translate(_CHARACTERS))
    text = _STAT.sub(r"\1, \2, \3, \4, \5 MiB, \6 MiB", _STAT.sub(rf"{_OF_STAT}\n\g<0>", text, 1))
    text = _UNIT.sub(r"\1\2\1 ", text)
    if "Overall Health" in text:
        text = _VALUE.sub(r"\n| \1 | \2 |\n", text)
    return _NOTE.sub("", text)


def unquote(lines: list[str]) -> list[str]:
    """The lines as the tools wrote them: without marks of a quotation, prefixes of other tools, and indentation.

    The number of lines stays the same. A fence of Markdown separates blocks that are read by themselves.
    """
    done: list[str] = []
    for is_fence, block in groupby(lines, key=lambda line: bool(FENCE.fullmatch(line))):
        for mark, run in groupby(block, key=lambda line: (at := _QUOTE.match(line)) and at["mark"]):
            marked = list(run)
            found = [_QUOTE.sub("", line) for line in marked] if mark else marked
            # A heading of Markdown and a prompt of root begin as a comment does.
            is_output = mark in (None, ">") or (len(found) >= _COMMENT and any(map(_is_first, found)))
            kept = found if is_output else marked
            done += kept if is_fence else _bare(kept)
    return done


def as_csv(lines: Sequence[str]) -> Iterator[str]:
    """The lines, with tables of Markdown that show fields of ``--query-gpu`` as their CSV."""
    is_table = False
    for line, below in zip(lines, (*lines[1:], ""), strict=True):
        row = ", ".join(cell.strip(" `") for cell in line.strip().strip("|").split("|"))
        is_table = line.count("|") > 1 and (
            is_table or bool(_UNDERLINE.fullmatch(below) and smi_csv.is_header(row.replace("GPU,", "index,")))
        )
        if not is_table or not _UNDERLINE.fullmatch(line):
            yield row.replace("GPU,", "index,") if is_table and row.startswith("GPU,") else row if is_table else line


def _bare(lines: list[str]) -> list[str]:
    """The lines of one block without a prefix that almost all of them have, as long as there is one."""
    filled = [line for line in lines if line.strip()]
    indent = min((line[: len(line) - len(line.lstrip())] for line in filled), key=len, default="")
    width = len(indent) if all(line.startswith(indent) for line in filled) else 0
    if "\t" in indent and not any(_is_first(line[width:]) for line in filled):
        width = 0  # lines of lspci about a device
    # An indented kernel log keeps its indentation, which may belong to the time.
    is_log = any(map(is_kernels, [text for line in filled[:_FEW] for text in (line, line[width:])]))
    if width and not is_log:
        return _bare([line[width:] for line in lines])
    bare = _without_frame(lines, is_log=is_log)
    return _bare(bare) if bare != lines else list(_outdented(_unwrapped(lines, is_log=is_log)))


def _separated(line: str) -> str:
    """The lines that a program wrote as one, with escapes, or that a web page shows as one."""
    if len(line) < _JOINED:
        return line
    pieces = _unescaped(_BREAK.sub("\n", line)).split("\n")
    if len(pieces) >= _COMMENT:
        pieces[0], pieces[-1] = re.split("[\"']", pieces[0])[-1], re.split("[\"']", pieces[-1])[0]
        if any(is_kernels(one) or _is_first(one) or MATRIX.match(one) for one in pieces):
            return "\n".join(pieces)
    if _BORDERS.search(line):
        return _ROW_END.sub("\n", line)
    for joint in _JOINTS:
        if len(joint.findall(f" {line}")) > 1:
            line = joint.sub("\n", f" {line}").strip("\n")
    return unindented.with_lines(line) if len(line) < LONGEST_LINE else line


def _unescaped(text: str) -> str:
    return text.replace("\\t", "\t").replace('\\"', '"')


def _is_dump(text: str) -> bool:
    return smi_topo.begins_part(text) or any(begins(text) for begins in _FIRST_LINES)


def _without_frame(lines: list[str], *, is_log: bool) -> list[str]:
    """The lines without what another program wrote before and behind each: a name, a time, a number, a quotation mark.

    It is known from the first line of a dump, and almost all lines from there on have it.
    """
    tried = set()
    for line in lines[:_TRIED]:
        is_bare = _is_dump(line) or is_kernels(line)
        ends = [] if is_bare and not is_log else [found.start() for found in _ENDS.finditer(line[:_REACH])]
        for end in filter(None, ends):
            first = _unescaped(line[end:]).rstrip("`\"',")
            frame = _shape(line[:end])
            if frame in tried or not (_is_dump(first) or (not is_log and is_kernels(first))):
                continue
            tried.add(frame)
            have = [place for place, text in enumerate(lines) if frame.match(text)]
            filled = sum(bool(text.strip()) for text in lines[have[0] : have[-1] + 1]) if have else 0
            if len(have) >= max(_COMMENT, _QUOTED * filled):
                found = [_inside(line[end - 1], frame, text) for text in lines]
                if _is_dump(first) and _HOST.fullmatch(line[:end]):
                    return list(_by_host([*map(frame.match, lines)], found))
                if _is_dump(first) or sum(map(is_kernels, found)) > len(have) / 2:
                    return found
    return lines


def _by_host(frames: Iterable[re.Match[str] | None], lines: Iterable[str]) -> Iterator[str]:
    """The lines of each host together, with a fence behind those of each but the last."""
    hosts: dict[str, list[str]] = {}
    host = ""
    for frame, line in zip(frames, lines, strict=True):
        host = frame[0].strip() if frame else host
        hosts.setdefault(host, []).append(line)
    for place, own in enumerate(hosts.values()):
        yield from ("```", *own) if place else own


def _shape(prefix: str) -> re.Pattern[str]:
    """What a prefix looks like on other lines: with other names and numbers. What is behind it may be empty."""
    body = prefix.rstrip(" ")
    words = (
        r"\w+" if word[0].isalnum() else " *" if word.isspace() else re.escape(word)
        for word in re.findall(r"[^\W_]+| +|[\W_]", body)
    )
    return re.compile("".join(words) + rf"(?: {{{len(prefix) - len(body)}}}|\s*$)")


def _inside(mark: str, frame: re.Pattern[str], line: str) -> str:
    bare = frame.sub("", line, count=1)
    if mark not in "\"'`":
        return bare
    return _unescaped(re.sub(rf"{mark},?\s*$", "", bare)) if bare != line else line if line.strip(" \t,[]{}") else ""


def _unwrapped(lines: list[str], *, is_log: bool) -> list[str]:
    """The lines, each in one piece, with empty lines where the other pieces were."""
    width = max(map(len, lines))
    done = list(lines)
    at = columns = 0
    for place, line in enumerate(lines):
        before = lines[place - 1] if place else ""
        left = width - len(before) if width in _WIDTHS else _REACH
        if before and line.strip() and _goes_on(done[at], line, columns, left=left, is_log=is_log):
            done[at] += line if not left else f" {line}"
            done[place] = ""
        else:
            at = place
        is_header = smi_csv.begins(done[at].rstrip(" ,"))
        columns = done[at].rstrip(" ,").count(",") if is_header else columns if "," in line else 0
    return done


def _goes_on(row: str, line: str, columns: int, *, left: int, is_log: bool) -> bool:
    """Whether the line is the rest of the row, by the form of what the row is.

    A row of a table and an element of XML end with their mark, and a row of CSV has a cell for each column. Others go
    on in a line that does not begin as theirs do, if its first word had no room above.
    """
    is_full = left < 1 + len(line.partition(" ")[0])
    if row[:1] in {"|", "+"}:
        is_cut = not left and row.rstrip()[-1] not in "|+"
        return len(row) > _ROW_WIDTH and line.rstrip()[-1] in "|+" and (is_cut or line[0] not in "|+")
    if _ELEMENT.match(row):
        return row.rstrip()[-1] != ">" and not is_kernels(line)
    if columns:
        is_header = smi_csv.begins(row.rstrip(" ,"))
        is_end = is_full and "," not in line and " " not in line
        return is_end or (
            smi_csv.is_header(line.rstrip(" ,")) if is_header else row.rstrip().rstrip(",").count(",") < columns
        )
    if smi_csv.is_query(f"{row} csv") and not smi_csv.is_query(row):
        return is_full
    if " : " in f"{row} ":
        return is_full and row[:1] == " " and line[:1] != " " and ":" not in line
    return is_full and is_log and bool(line[:1].strip("[< \t")) and is_kernels(row) and not is_kernels(line)


def _outdented(lines: Sequence[str]) -> Iterator[str]:
    """The lines, and what is indented below a sentence without its indentation, if it is output."""
    for is_text, run in groupby(lines, key=lambda line: bool(line[:1].strip())):
        block = list(run)
        width = min((len(line) - len(line.lstrip(" ")) for line in block if line.strip()), default=0)
        if not is_text and width and any(_is_first(line[width:]) for line in block):
            block = [line[width:] for line in block]
        yield from block


def _is_first(line: str) -> bool:
    """Whether the line is the first one of a dump, whatever stands around it."""
    if len(line) > LONGEST_LINE:
        return False
    if "GPU" in line and "\t" in line and MATRIX.match(line):
        return True
    return bool(line[:1].strip()) and (messages.begins(line) or any(begins(line) for begins in _FIRST_LINES))
