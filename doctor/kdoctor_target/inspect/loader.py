"""Finds the file that the dynamic loader would choose for a library that an object opens with ``dlopen``.

Nothing is loaded. The search follows glibc (``_dl_map_object``, ``open_path`` and ``open_verify`` in elf/dl-load.c,
``search_cache`` in elf/dl-cache.c, ld.so(8)):

1. libraries that ``LD_PRELOAD`` has already loaded, by soname;
2. if the opening object has no RUNPATH: its RPATH, then those of the objects that loaded it, up to the program;
3. ``LD_LIBRARY_PATH`` as it was when the process started;
4. the RUNPATH of the opening object only;
5. ``/etc/ld.so.cache``;
6. the default directories.

In each directory the subdirectories ``glibc-hwcaps/<level>`` that fit the CPU come first.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import struct
from functools import cached_property, lru_cache
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from kdoctor_target.inspect import elf

LD_PRELOAD = "LD_PRELOAD"
RPATH = "RPATH"
LD_LIBRARY_PATH = "LD_LIBRARY_PATH"
RUNPATH = "RUNPATH"
CACHE = "ld.so.cache"
DEFAULT = "default directory"

CACHE_FILE = "/etc/ld.so.cache"

_FALLBACK_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
_FIRST_GLIBC_WITH_HWCAPS = (2, 33)

# sysdeps/x86/cpu-features.c and the x86-64 psABI, by the names in /proc/cpuinfo.
_X86_LEVELS = (
    ("x86-64-v2", frozenset(("cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"))),
    ("x86-64-v3", frozenset(("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"))),
    ("x86-64-v4", frozenset(("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"))),
)

# Flags of the cache's entries for this machine (sysdeps/*/dl-cache.h).
_CACHE_FLAGS = {"x86_64": 0x0303, "aarch64": 0x0A03}
_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_CACHE_OLD_MAGIC = b"ld.so-1.7.0\0"
_HWCAP_EXTENSION = 1 << 62
_HWCAP_EXTENSION_MASK = 0xFFFFFFFF << 32
_EXTENSION_MAGIC = 0xEAA42174


class Place(NamedTuple):
    """One folder (or the cache) that the loader searches."""

    found_by: str
    path: str
    """As the loader uses it; ``..`` is kept, because it may follow a link."""


class Skipped(NamedTuple):
    """A file of the right name that the loader skipped."""

    path: str
    found_by: str
    reason: str


class Found(NamedTuple):
    """The result of a search."""

    path: Optional[str]
    """The file that the loader chooses, or None."""
    found_by: Optional[str]
    trouble: Optional[str]
    """Why the loader cannot load that file, as far as its headers show."""
    skipped: Tuple[Skipped, ...]


class Opener(NamedTuple):
    """The object that calls ``dlopen``."""

    path: str
    loaded_by: Tuple[str, ...] = ()
    """The object that loaded it, then the one that loaded that, without the program: their RPATH may apply, too."""


class Loader:
    """The loader's search for one opening object, in this process's environment."""

    def __init__(self, opener: Opener, environ: Dict[str, str], cache_file: str = CACHE_FILE) -> None:
        """Read the search path.

        Raises:
            elf.ElfError: the opening object or this interpreter is not an ELF file.
            OSError: it cannot be read.
        """
        self.own = elf.own_header()
        self.library = elf.read_library(opener.path)
        self._cache_file = cache_file
        self._preloaded = _preloaded(environ.get("LD_PRELOAD", ""), self.own)
        self.places: Tuple[Place, ...] = tuple(_unique(self._read_places(opener, environ)))

    @cached_property
    def hwcaps(self) -> Tuple[str, ...]:
        """The hwcaps subdirectories for this CPU, the most demanding first."""
        return read_hwcaps()

    @cached_property
    def _cache(self) -> Dict[str, List[Tuple[int, str, Optional[str]]]]:
        return read_cache(self._cache_file)

    def find(self, soname: str) -> Found:
        """The file that ``dlopen(soname)`` chooses if no library of that name is loaded yet."""
        for name, path in self._preloaded:
            if name == soname:
                return Found(path, LD_PRELOAD, None, ())
        skipped: List[Skipped] = []
        for place in self.places:
            for path in self._candidates(place, soname):
                try:
                    passed_over = self._try(path)
                except elf.ElfError as error:
                    return Found(path, place.found_by, str(error), tuple(skipped))
                if passed_over is None:
                    return Found(path, place.found_by, None, tuple(skipped))
                if passed_over:
                    skipped.append(Skipped(path, place.found_by, passed_over))
        return Found(None, None, None, tuple(skipped))

    def _try(self, path: str) -> Optional[str]:
        """None if the loader chooses this file; else why it skips it, or an empty string if the file does not exist.

        Raises:
            elf.ElfError: the loader chooses the file and fails.
        """
        try:
            elf.verify(path, self.own)
        except (FileNotFoundError, NotADirectoryError):
            return "it is a broken link" if os.path.islink(path) else ""
        except OSError as error:
            return f"cannot be read: {error.strerror or error}"
        except elf.OtherMachineError as error:
            return str(error)
        return None

    def find_all(self, soname: str) -> List[Tuple[str, str]]:
        """Every file of that name in the search, in order, with the kind of its place."""
        return [
            (path, place.found_by)
            for place in self.places
            for path in self._candidates(place, soname)
            if os.path.lexists(path)
        ]

    def _candidates(self, place: Place, soname: str) -> Iterator[str]:
        if place.found_by == CACHE:
            cached = self._look_up(soname)
            if cached is not None:
                yield cached
            return
        if os.path.isdir(os.path.join(place.path, "glibc-hwcaps")):
            for level in self.hwcaps:
                yield os.path.join(place.path, "glibc-hwcaps", level, soname)
        yield os.path.join(place.path, soname)

    def _look_up(self, soname: str) -> Optional[str]:
        """The path that the cache has for a name."""
        entries = self._cache.get(soname, [])
        for level in self.hwcaps if any(level for _, _, level in entries) else ():
            for _, path, of_level in entries:
                if of_level == level:
                    return path
        return next((path for hwcap, path, level in entries if level is None and not hwcap), None)

    def _read_places(self, opener: Opener, environ: Dict[str, str]) -> Iterator[Place]:
        program = os.path.realpath("/proc/self/exe")
        if self.library.runpath is None:
            for path in (opener.path, *opener.loaded_by, program):
                for folder in _own_rpath(path):
                    yield Place(RPATH, folder)
        for folder in split_path(environ.get("LD_LIBRARY_PATH", ""), os.path.dirname(program), separators=":;"):
            yield Place(LD_LIBRARY_PATH, folder)
        for folder in split_path(self.library.runpath or "", os.path.dirname(opener.path)):
            yield Place(RUNPATH, folder)
        if not self.library.no_default_folders:
            yield Place(CACHE, self._cache_file)
            for folder in default_folders():
                yield Place(DEFAULT, folder)


def _own_rpath(path: str) -> List[str]:
    """The folders of an object's RPATH; empty if it has none, has a RUNPATH, or cannot be read."""
    try:
        library = elf.read_library(path)
    except (OSError, elf.ElfError):
        return []
    return split_path("" if library.runpath is not None else library.rpath or "", os.path.dirname(path))


def _unique(places: Iterator[Place]) -> Iterator[Place]:
    """The places without duplicates, in order."""
    seen = set()
    for place in places:
        if place.path not in seen:
            seen.add(place.path)
            yield place


def starting_environment(environ: Dict[str, str]) -> Dict[str, str]:
    """The environment when this process was started: the loader does not see later changes."""
    try:
        with open("/proc/self/environ", "rb") as file:
            entries = [entry.partition(b"=") for entry in file.read().split(b"\0") if b"=" in entry]
    except OSError:
        return dict(environ)
    found: Dict[str, str] = {}
    for name, _, value in entries:
        found.setdefault(os.fsdecode(name), os.fsdecode(value))
    return found


def split_path(text: str, origin: str, separators: str = ":") -> List[str]:
    """The folders of a search path, with ``$ORIGIN``, ``$LIB`` and ``$PLATFORM`` expanded.

    An empty entry is the working directory. ``origin`` is the folder of the object that the path belongs to.
    """
    if not text:
        return []
    entries = re.split(f"[{separators}]", text)
    folders = [os.path.join(os.getcwd(), _expand(entry, origin)) for entry in entries]
    return [folder.rstrip("/") or "/" for folder in folders]


def _expand(entry: str, origin: str) -> str:
    def replacement(match: "re.Match[str]") -> str:
        name = match.group(1) or match.group(2)
        if name == "ORIGIN":
            return origin
        return _lib_folder() if name == "LIB" else platform.machine()

    return re.sub(r"\$(?:(ORIGIN|LIB|PLATFORM)\b|\{(ORIGIN|LIB|PLATFORM)\})", replacement, entry)


def _lib_folder() -> str:
    """The value of ``$LIB``: ``lib/x86_64-linux-gnu`` on Debian, ``lib64`` elsewhere."""
    found = (re.match(r"(?:/usr)?/(lib64|lib/[^/]+)$", folder) for folder in default_folders())
    return next((match.group(1) for match in found if match), "lib64")


class _SearchPath(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("flags", ctypes.c_uint)]


class _SearchInfo(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("count", ctypes.c_uint)]


@lru_cache(maxsize=None)
def default_folders() -> Sequence[str]:
    """The default folders of the loader, as reported by ``dlinfo``, because they differ between distributions."""
    with contextlib.suppress(OSError, AttributeError):
        return _ask_default_folders() or _FALLBACK_FOLDERS
    return _FALLBACK_FOLDERS


def _ask_default_folders() -> List[str]:
    """The end of the search path of the C library, which has no search path itself.

    glibc leaves the flags for the kind of a folder at zero, so folders of LD_LIBRARY_PATH are included. They precede
    the default ones in the search anyway. The program's RPATH applies to some libraries only and is removed.
    """
    request_paths, request_size = 4, 5  # RTLD_DI_SERINFO, RTLD_DI_SERINFOSIZE
    libc = ctypes.CDLL("libc.so.6")
    dlinfo = getattr(libc, "dlinfo", None) or ctypes.CDLL("libdl.so.2").dlinfo
    dlinfo.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    handle = libc._handle  # noqa: SLF001 - ctypes has no other name for it
    size = _SearchInfo()
    if dlinfo(handle, request_size, ctypes.byref(size)):
        raise OSError("the loader does not report its default folders")
    buffer = ctypes.create_string_buffer(size.size)
    ctypes.memmove(buffer, ctypes.byref(size), ctypes.sizeof(size))
    if dlinfo(handle, request_paths, buffer):
        raise OSError("the loader does not report its default folders")
    entries = (_SearchPath * size.count).from_buffer(buffer, ctypes.sizeof(_SearchInfo))
    program = _own_rpath(os.path.realpath("/proc/self/exe"))
    found = [os.path.join(os.getcwd(), os.fsdecode(entry.name)).rstrip("/") or "/" for entry in entries if entry.name]
    return [folder for folder in found if folder not in program]


def _preloaded(text: str, own: elf.Header) -> List[Tuple[str, str]]:
    """Soname and path of the files in ``LD_PRELOAD`` that are given by path."""
    found = []
    for path in re.split("[ :]", text):
        if "/" not in path:
            continue
        try:
            elf.verify(path, own)
            library = elf.read_library(path)
        except (OSError, elf.ElfError, elf.OtherMachineError):
            continue
        found.append((library.soname or os.path.basename(path), os.path.abspath(path)))
    return found


def read_hwcaps() -> Tuple[str, ...]:
    """The names below ``glibc-hwcaps`` that fit this CPU, the most demanding first."""
    libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
    if tuple(int(part) for part in re.findall(r"\d+", libc)[:2]) < _FIRST_GLIBC_WITH_HWCAPS:
        return ()
    if platform.machine() != "x86_64":
        return ()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = next((line.partition(":")[2].split() for line in file if line.startswith("flags")), [])
    except OSError:
        return ()
    levels: List[str] = []
    for level, wanted in _X86_LEVELS:
        if not wanted <= set(flags):
            break
        levels.insert(0, level)
    return tuple(levels)


def read_cache(path: str) -> Dict[str, List[Tuple[int, str, Optional[str]]]]:
    """The cache's entries for this machine by soname: capability bits, path, and name below ``glibc-hwcaps`` if any.

    Empty for a missing or damaged cache, which the loader treats the same way.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
        return _parse_cache(data)
    except (OSError, struct.error, ValueError):
        return {}


def _parse_cache(data: bytes) -> Dict[str, List[Tuple[int, str, Optional[str]]]]:
    # An old cache may come before the new one; offsets count from the start of the new one.
    start = data.find(_CACHE_MAGIC) if data.startswith(_CACHE_OLD_MAGIC) else 0
    data = data[start:] if start >= 0 else b""
    if not data.startswith(_CACHE_MAGIC):
        return {}
    count, _, _, extensions = struct.unpack_from("=IIII", data, 20)
    wanted = _CACHE_FLAGS.get(platform.machine())
    levels = _cache_levels(data, extensions)
    found: Dict[str, List[Tuple[int, str, Optional[str]]]] = {}
    for flags, key, value, _, hwcap in struct.iter_unpack("=iIIIQ", data[48 : 48 + 24 * count]):
        if flags != wanted:
            continue
        level = None
        if hwcap & _HWCAP_EXTENSION_MASK == _HWCAP_EXTENSION:
            index = hwcap & 0xFFFFFFFF
            level = levels[index] if index < len(levels) else ""
        found.setdefault(_cache_text(data, key), []).append((hwcap, _cache_text(data, value), level))
    return found


def _cache_levels(data: bytes, offset: int) -> List[str]:
    """The names below ``glibc-hwcaps`` that the cache's entries refer to by number (extension with tag 1)."""
    if not offset or struct.unpack_from("=I", data, offset)[0] != _EXTENSION_MAGIC:
        return []
    (sections,) = struct.unpack_from("=I", data, offset + 4)
    for index in range(min(sections, 16)):
        tag, _, start, size = struct.unpack_from("=IIII", data, offset + 8 + 16 * index)
        if tag == 1:
            return [
                _cache_text(data, text) for (text,) in struct.iter_unpack("=I", data[start : start + size // 4 * 4])
            ]
    return []


def _cache_text(data: bytes, offset: int) -> str:
    return os.fsdecode(data[offset : data.index(b"\0", offset)])
