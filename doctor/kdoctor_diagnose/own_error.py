"""Whose error it is, where a program's own error is the answer: by its class and its message. It is pure."""

import builtins
import re
from typing import cast

from kdoctor_diagnose.model import Owner
from kdoctor_diagnose.tracebacks import SEPARATOR, is_library

_LOOK: dict[Owner, str] = {
    "program": "Read the line of the program that raised it, and the values it gets.",
    "data": "Look for the record or file in the data, and leave it out or make it again.",
    "machine": "Look at the machine: disk, memory, network, driver.",
    "environment": "Look whether the job ran in its environment, and at the packages and versions in it: pip check.",
    "undecided": "Read the line of the program that raised it and the values it gets, then the log before it.",
}
"""What to look at, in a sentence."""
_WORDS: dict[Owner, str] = {
    "machine": r"MemoryError|\[Errno (?:5|1[126]|2[348]|30|11[0136]|12[12])\]|(?i:input/output error)"
    r"|No space left|Stale file handle|[Qq]uota ?[Ee]xceeded|Cannot allocate memory"
    r"|Connection(?:Refused|Reset|Aborted)?Error|TimeoutError"
    r"|CUDA_ERROR(?!_STREAM_CAPTURE)|CU(?:BLAS|DNN)_STATUS|hipError|HIP_ERROR|miopenStatus|NCCL (?:operation|error)"
    r"|ncclComm|OutOfMemory|[Tt]imed out|(?:exceeded|maximum).{0,30} time\b|nodes are avail|Name or service"
    r"|(?:URL fetch fail|urlopen error)(?!.*CERTIFICATE)|name resolution|\b[Nn]o (?:\w+ )?GPUs?\b|requested GPUs"
    r"|\w+(?:Died|Lost|Crashed)\w*Error|(?:write|read|sync|open)(?:ing)? (?:of .{1,60} )?failed"
    r"(?!.*errno = (?:2|13|21)\b)",
    "environment": r"CERTIFICATE_VERIFY_FAILED|'ascii' codec can|undefined symbol"
    r"|^ImportError(?!.*\((?!.*(?:(?:site|dist)-packages|[/\\]lib[/\\])).*\.py\))"
    r"|cannot open shared object|DLL load failed|version `GLIBC|DistributionNotFound|VersionConflict|Unknown backend"
    r"|AttributeError: module |has no attribute '__version__'|CUDA_ERROR_STREAM_CAPTURE|^Check failed: |enforce fail"
    r"|failed assertion|INTERNAL ASSERT|not compiled with|following module\(s\) are unknown|^Non-OK-status: "
    r"|registered (?:compiler|transfer manager|platform)|not supported on (?:this )?platform|PJRT",
    "data": r"corrupt|Unknown image file format|unknown format starting with|[Dd]ecod|truncated|batch tensors"
    r"|BadZipFile|BadGzipFile|EOFError|\bFeature: .* (?:is required|could not be)|[Cc]ould not parse example"
    r"|ParserError|(?:identify|[Ii]nvalid) (?:image|JPEG|PNG|GIF)|tensor to the batch|format to read the specified"
    r"|Expect \d+ fields|Field \d+ .*is not a valid|[Ff]ailed to parse|invalid literal for|could not convert string"
    r"|_src\.empty\(\)|not (?:found )?in (?:index|axis)\b",
}
_OWNERS = {owner: re.compile(words) for owner, words in _WORDS.items()}
"""The first that matches counts: a message that names the data or the machine says more than the class."""
_PROGRAM = re.compile(
    r"(?i:no such file|cannot find the (?:file|path)|^\S+: error: )|Permission denied|[Ss]hapes?\b"
    r"|same first dimension|tensors to be on the same device|^(?:numpy\..*)?_?\w*(?:Tensor|Tracer|Graph|UFunc)\w*Error"
)
"""What is a mistake of programs where neither class nor status says anything."""
_STATUS = re.compile(
    r"(?i)(?:(?P<machine>unavailable|deadline[ _]?exceeded|resource[ _]?exhausted|aborted)|(?P<data>data[ _]?loss)"
    r"|(?P<environment>internal|unimplemented)|(?P<program>invalid[ _]?argument|not[ _]?found|already[ _]?exists"
    r"|permission[ _]?denied|failed[ _]?precondition|out[ _]?of[ _]?range)|(?P<undecided>unknown|cancelled))(?:error)?"
)
"""The status codes of TensorFlow, JAX and gRPC, however they are written, by whose error they are."""
_CLASS = re.compile(r"(?:[A-Za-z_]\w*\.)*(?P<name>[A-Za-z_]\w*)(?:: |$)")
_VAGUE = (Exception, OSError, RuntimeError, SystemError, BufferError)
"""Classes of Python whose exceptions may be about anything."""

_OTHERS = re.compile(
    r"packages[/\\](?!(?:tensorflow\w*|(?:tf_)?keras|keras_core|jax(?:lib)?|torch)[/\\])|[/\\]lib[/\\]python[\d.]+[/\\](?!\w+-p|inspect)"
)
"""A file of a library that is not a framework: a framework, or inspect, also raises the mistakes of programs."""
_MISSING = re.compile(r"No module named ['\"]?(?P<name>\w+)")
_OWN_MODULE = re.compile(
    r"(?:dataset|(?:data|model|train|test|util|helper|config|loss|layer|net|network|metric|tool|option)"
    r"(?:e?s|er|ing|_?loader|_\w+)?|src|lib|core|common|my_\w+|preprocess\w*)$"
)
"""How programs call their own modules. The name of a package says what it is for."""
_READERS = re.compile(
    r"(?:packages[/\\]|^)(?:pandas|PIL|h5py|pycocotools)[/\\]|[/\\]keras(?:_|[/\\])preprocessing[/\\]"
)
"""A file of a library that reads data."""
_INTERFACE = re.compile(
    "has no attribute|unexpected keyword argument|multiple values for|cannot import name|positional arg"
)


def look_at(text: str, owner: Owner) -> str:
    """What to look at, or to install."""
    missing = _MISSING.search(text)
    install = "Install the package with the module {} in the job's environment, or correct the import."
    refused = "PreflightError: " in text and "Apply the fixes below it in the log: kdoctor.guard found this before fit."
    return install.format(missing["name"]) if missing else refused or _LOOK[owner]


def owner_of(text: str, file: str = "", program: str | None = None) -> Owner:
    """Whose error it is, as far as its text, the file that raised it and the program's place on the way there say."""
    if "multiprocessing" in file and text.startswith(("EOFError", "ConnectionReset")):  # the peer of a pipe has ended
        return "undecided"
    if _READERS.search(file) and text.startswith(("KeyError", "IndexError", "ZeroDivisionError")):
        return "data"  # a table has no such column, an image no size
    missing = _MISSING.search(text)
    if missing:
        is_own = _OWN_MODULE.match(missing["name"]) or missing["name"] in SEPARATOR.split(file)[:-1]
        return "program" if is_own and not is_library(file) else "environment"
    if _OTHERS.search(file) and _INTERFACE.search(text):  # a library asks another one for what it does not have
        return "environment"
    said = next((owner for owner, pattern in _OWNERS.items() if pattern.search(text)), None)
    return said or _owner_by_class(text) or ("program" if program or _PROGRAM.search(text) else "undecided")


def _owner_by_class(text: str) -> Owner | None:
    """Whose error the class or the status is: a class of Python that can only be a mistake is the program's."""
    named = _CLASS.match(text)
    kind = getattr(builtins, named["name"], None) if named else None
    if isinstance(kind, type) and issubclass(kind, Exception) and kind not in _VAGUE:
        return "program"
    found = next(filter(None, (_STATUS.fullmatch(part.rpartition(".")[2]) for part in text.split(": ")[:4])), None)
    return cast("Owner | None", found.lastgroup) if found else None
