"""Whose error it is, where a program's own error is the answer: by its class and its message. It is pure."""

import re

from kdoctor_diagnose.model import Owner

LOOK: dict[Owner, str] = {
    "program": "Read the line of the program that raised it, and what it is given.",
    "data": "Look for the record or file in the data, and leave it out or make it again.",
    "machine": "Look at the machine: disk, memory, network, driver.",
    "environment": "Look at the installed packages and their versions: pip check.",
    "undecided": "Read the line of the program that it names, and what it is given; then the log before it.",
}
"""What to look at, in a sentence."""
_WORDS: dict[Owner, str] = {
    "machine": r"MemoryError|\[Errno (?:5|12|28|116|121)\]|(?i:input/output error)|No space left|Cannot allocate memory"
    r"|Connection(?:Refused|Reset|Aborted)?Error|BrokenPipe|TimeoutError|DeadlineExceeded|UnavailableError"
    r"|CUDA_ERROR|CU(?:BLAS|DNN)_STATUS|hipError|HIP_ERROR|miopenStatus|NCCL operation|ncclComm|Stale file handle"
    r"|ResourceExhausted|OutOfMemory|URL fetch failure|Connection timed out|Name or service not known",
    "environment": r"^ImportError(?!.*\((?!.*(?:(?:site|dist)-packages|[/\\]lib[/\\])).*\.py\))|undefined symbol"
    r"|cannot open shared object|DLL load failed|version `GLIBC"
    r"|AttributeError: module |has no attribute '__version__'|DistributionNotFound|VersionConflict"
    r"|RuntimeError: INTERNAL: |^Check failed: |^Non-OK-status: |^Status: |failed assertion"
    r"|registered (?:compiler|transfer manager|platform)|not supported on (?:this )?platform",
    "data": r"DataLossError|corrupt|Unknown image file format|unknown format starting with|[Dd]ecod|truncated"
    r"|BadZipFile|BadGzipFile|EOFError"
    r"|ParserError|Invalid (?:JPEG|PNG|GIF)|UnidentifiedImageError"
    r"|Expect \d+ fields|Field \d+ .*is not a valid|[Ff]ailed to parse|invalid literal for|could not convert string",
    "program": r"^(?:Import|ModuleNotFound|FileNotFound|Permission"
    r"|IsADirectory|NotADirectory|FileExists|Key|Index|Name|Type"
    r"|Value|Attribute|Assertion|NotImplemented|ZeroDivision|UnboundLocal|Syntax|Indentation|Recursion|Lookup|Overflow"
    r"|InvalidArgument|NotFound|PermissionDenied|FailedPrecondition|Unimplemented|Preflight)Error|(?i:no such file)"
    r"|Permission denied|^StopIteration|^(?:numpy\..*)?_?UFunc\w*Error|[Ss]hapes?\b|tensors to be on the same device",
}
_OWNERS = {owner: re.compile(words) for owner, words in _WORDS.items()}
"""The first that matches counts: a message that names the data or the machine says more than the class."""


def owner_of(text: str) -> Owner:
    """Whose error it is, as far as its text says."""
    return next((owner for owner, pattern in _OWNERS.items() if pattern.search(text)), "undecided")
