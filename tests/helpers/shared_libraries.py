"""Small shared libraries, built with the system's compiler, and the result of the real loader for them."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DOCTOR = Path(__file__).parents[2] / "doctor"

OPENER_SOURCE = """\
#include <dlfcn.h>
const char *open_it(const char *name) {
    return dlopen(name, RTLD_NOW | RTLD_LOCAL) ? "" : dlerror();
}
"""

# kdoctor runs before the real loader, because a loaded library is found by its name.
_ASK_BOTH = """\
import ctypes, json, os, sys
sys.path.insert(0, sys.argv[1])
from kdoctor_target.inspect.loader import Loader, Opener
opener, soname, cache = sys.argv[2:5]
environ = dict(os.environ)
found = Loader(Opener(opener), environ, *([cache] if cache else [])).find(soname)
said = None if found.path is None else os.path.realpath(found.path)
library = ctypes.CDLL(opener)
library.open_it.restype = ctypes.c_char_p
error = library.open_it(soname.encode()).decode()
mapped = {line.split()[-1] for line in open("/proc/self/maps") if line.rstrip().endswith(".so.1")}
loaded = sorted(path for path in mapped if soname.rpartition("/")[2].partition(".so")[0] in path)
print(json.dumps({"said": said, "found_by": found.found_by, "trouble": found.trouble, "error": error, "loaded": loaded,
                  "skipped": [entry.reason for entry in found.skipped]}))
"""


def build(path: Path, source: str = "int answer;", *options: str, soname: str | None = None) -> Path:
    """Compile a shared library. The default soname is the name of the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    code = path.with_name(path.name + ".c")
    code.write_text(source)
    argv = [
        "cc",
        "-shared",
        "-fPIC",
        "-o",
        str(path),
        str(code),
        f"-Wl,-soname,{soname or path.name}",
        *options,
        "-ldl",
    ]
    subprocess.run(argv, check=True, capture_output=True)
    code.unlink()
    return path


def build_opener(path: Path, search: str | None, kind: str = "RUNPATH") -> Path:
    """A library that opens others, with the search path ``search``."""
    tags = "--enable-new-dtags" if kind == "RUNPATH" else "--disable-new-dtags"
    return build(path, OPENER_SOURCE, *([f"-Wl,{tags},-rpath,{search}"] if search is not None else []))


@dataclass(frozen=True)
class Answers:
    """The result of kdoctor, and the result of the real loader."""

    said: str | None
    found_by: str | None
    trouble: str | None
    skipped: list[str]
    error: str
    """The message of the loader. Empty if it loaded the library."""
    loaded: list[str]


def ask_both(opener: Path, soname: str, environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Answers:
    """Search for a library in a separate process, with kdoctor and with the real loader."""
    argv = [sys.executable, "-c", _ASK_BOTH, str(DOCTOR), str(opener), soname, ""]
    variables = {"PATH": os.environ.get("PATH", os.defpath), **(environ or {})}
    end = subprocess.run(argv, capture_output=True, text=True, env=variables, cwd=cwd, check=False)
    assert end.returncode == 0, end.stderr
    return Answers(**json.loads(end.stdout))
