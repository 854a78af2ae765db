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
    r"|Connection(?:Refused|Reset|Aborted)?Error|TimeoutError|DeadlineExceeded|UnavailableError|URL fetch fail"
    r"|CUDA_ERROR(?!_STREAM_CAPTURE)|CU(?:BLAS|DNN)_STATUS|hipError|HIP_ERROR|miopenStatus|NCCL operation|ncclComm"
    r"|Stale file handle|ResourceExhausted|OutOfMemory|Connection timed out|Name or service not known|nodes are avail",
    "environment": r"^ImportError(?!.*\((?!.*(?:(?:site|dist)-packages|[/\\]lib[/\\])).*\.py\))|undefined symbol"
    r"|cannot open shared object|DLL load failed|version `GLIBC|DistributionNotFound|VersionConflict|Unknown backend"
    r"|AttributeError: module |has no attribute '__version__'|CUDA_ERROR_STREAM_CAPTURE|RuntimeError: INTERNAL: "
    r"|^Check failed: |^Non-OK-status: |^Status: |failed assertion"
    r"|registered (?:compiler|transfer manager|platform)|not supported on (?:this )?platform",
    "data": r"DataLossError|corrupt|Unknown image file format|unknown format starting with|[Dd]ecod|truncated"
    r"|BadZipFile|BadGzipFile|EOFError|\bFeature: .* (?:is required|could not be)|[Cc]ould not parse example"
    r"|ParserError|Invalid (?:JPEG|PNG|GIF)|UnidentifiedImageError"
    r"|Expect \d+ fields|Field \d+ .*is not a valid|[Ff]ailed to parse|invalid literal for|could not convert string",
    "program": r"^(?:Import|ModuleNotFound|FileNotFound|Permission|IsADirectory|NotADirectory|FileExists|Key|Index|Name"
    r"|Type|Value|Attribute|Assertion|NotImplemented|ZeroDivision|UnboundLocal|Syntax|Indentation|Recursion|Lookup"
    r"|Overflow|OperatorNotAllowedInGraph|InaccessibleTensor|InvalidArgument|NotFound|PermissionDenied"
    r"|FailedPrecondition|Unimplemented|Preflight)Error|(?i:no such file)|Permission denied|^StopIteration"
    r"|^(?:numpy\..*)?_?UFunc\w*Error|[Ss]hapes?\b|tensors to be on the same device",
}
_OWNERS = {owner: re.compile(words) for owner, words in _WORDS.items()}
"""The first that matches counts: a message that names the data or the machine says more than the class."""

_OTHERS = re.compile(
    r"packages[/\\](?!(?:tensorflow\w*|keras|tf_keras|jax|jaxlib|torch)[/\\])|[/\\]lib[/\\]python[\d.]+[/\\](?!\w+-p)"
)
"""A file of a library that is not a framework: a framework also raises the mistakes of programs."""
_INTERFACE = re.compile(
    "has no attribute|unexpected keyword argument|multiple values for|cannot import name|No module named|positional arg"
)


def owner_of(text: str, file: str = "") -> Owner:
    """Whose error it is, as far as its text and the file that raised it say."""
    if "multiprocessing" in file and text.startswith(("EOFError", "ConnectionReset")):  # the peer of a pipe has ended
        return "undecided"
    if re.search(r"(?:packages[/\\]|^)pandas[/\\]", file) and text.startswith("KeyError"):  # a table has no such column
        return "data"
    if _OTHERS.search(file) and _INTERFACE.search(text):  # a library asks another one for what it does not have
        return "environment"
    return next((owner for owner, pattern in _OWNERS.items() if pattern.search(text)), "undecided")
