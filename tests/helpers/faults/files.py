"""Faults of clocks and files: jumps of the clock, files that cannot be read, and planted links."""

import contextlib
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from helpers.faults.interpreters import ENVIRONMENT, end_at_once, slow_import
from helpers.faults.running import QUICK, Fault, wait_until_ended

UNREADABLE = "/proc/self/mem"
"""A file whose first byte cannot be read: the kernel answers EIO."""
JUMPS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

static int jump(void) {  /* a year forward, a year back, and right, every 50 ms */
    struct timespec now;
    static int (*ask)(clockid_t, struct timespec *);
    if (!ask) ask = dlsym(RTLD_NEXT, "clock_gettime");
    ask(CLOCK_MONOTONIC, &now);
    return ((int)(now.tv_nsec / 50000000) % 3 - 1) * 31536000;
}
int clock_gettime(clockid_t id, struct timespec *found) {
    static int (*ask)(clockid_t, struct timespec *);
    if (!ask) ask = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = ask(id, found);
    if (id == CLOCK_REALTIME) found->tv_sec += jump();
    return failed;
}
int gettimeofday(struct timeval *restrict found, void *restrict zone) {
    static int (*ask)(struct timeval *, void *);
    if (!ask) ask = dlsym(RTLD_NEXT, "gettimeofday");
    int failed = ask(found, zone);
    found->tv_sec += jump();
    return failed;
}
time_t time(time_t *found) {
    struct timeval now;
    gettimeofday(&now, 0);
    if (found) *found = now.tv_sec;
    return now.tv_sec;
}
"""
VICTIM = "a file that is not kdoctor's\n"


def _jumping_clock(folder: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    (folder / "jumps.c").write_text(JUMPS)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "jumps.so", folder / "jumps.c", "-ldl"], check=True)


def _failing_import(folder: Path) -> None:
    slow_import(folder)
    end_at_once(folder)


def _links(folder: Path) -> None:
    """Links with the names of kdoctor's files, to files that are not kdoctor's."""
    _failing_import(folder)
    victim = folder / "victim"
    victim.mkdir()
    (victim / "file").write_text(VICTIM)
    for name in (
        "kdoctor-smoke-planted",
        "kdoctor-import-planted",
        "kdoctor-rollback-planted",
        "kdoctor-wheel-planted",
    ):
        (folder / "tmp" / name).symlink_to(victim)
    real = folder / "tmp" / "kdoctor-smoke-real"
    real.mkdir()
    (real / "link").symlink_to(victim)
    (folder / "history.db-journal").symlink_to(victim / "file")


def _are_intact(process: psutil.Process, folder: Path) -> None:
    """Wait for the end, compare the files that the links name, and remove the links, which may stay."""
    wait_until_ended(process)
    assert (folder / "victim" / "file").read_text() == VICTIM
    assert not (folder / "tmp" / "kdoctor-smoke-real").exists()
    for path in (folder / "tmp").iterdir():
        assert path.is_symlink()
        path.unlink()


def _output_link(folder: Path) -> None:
    """The report itself is a link: its target is what the user named."""
    (folder / "report.json").symlink_to(folder / "elsewhere.json")


def _was_followed(process: psutil.Process, folder: Path) -> None:
    wait_until_ended(process)
    assert (folder / "report.json").is_symlink()
    assert (folder / "elsewhere.json").read_text().startswith("{")


def _tiny_disk(folder: Path) -> None:
    """A full file system for temporary files, outputs or the history."""
    (folder / "disk").mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder / "disk"], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("a tmpfs cannot be mounted here")
    with (folder / "disk" / "full").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass


def _read_only_disk(folder: Path) -> None:
    _tiny_disk(folder)
    subprocess.run(["mount", "-o", "remount,ro", folder / "disk"], check=True)


def _unmount(process: psutil.Process, folder: Path) -> None:
    try:
        wait_until_ended(process)
    finally:
        subprocess.run(["umount", folder / "disk"], check=True)


def _on_disk(what: str, before: Callable[[Path], None] = lambda _: None, **changes: object) -> dict[str, Fault]:
    """The disk of something is full, or read-only."""

    def prepared(disk: Callable[[Path], None], folder: Path) -> None:
        disk(folder)
        before(folder)

    return {
        f"disk: {what} on a {name} disk": Fault(
            prepare=partial(prepared, disk),
            meanwhile=_unmount,
            slow=True,
            **changes,  # type: ignore[arg-type]
        )
        for name, disk in (("full", _tiny_disk), ("read-only", _read_only_disk))
    }


UNREADABLE_INPUTS = (
    ("check", "--snapshot", UNREADABLE),
    ("check", "--no-smoke", "--checklist", UNREADABLE),
    ("snapshot", "--import", UNREADABLE),
    ("topology", "--snapshot", UNREADABLE),
    ("rollback", "--to", UNREADABLE),
    ("matrix", "--matrix", UNREADABLE),
    ("diagnose", UNREADABLE),
    ("fleet", "merge", UNREADABLE),
    ("lint", UNREADABLE),
)


FILES: dict[str, Fault] = {
    "clock: jumps by a year": Fault(
        exits=(0,),
        says=r"READY in \d",
        variables={"LD_PRELOAD": "{folder}/jumps.so"},
        prepare=_jumping_clock,
        slow=True,
    ),
    **{
        f"EIO: {' '.join(arguments[:-1])}": Fault(
            exits=(1, 2), says="Input/output error|could not be read", arguments=arguments, slow=True
        )
        for arguments in UNREADABLE_INPUTS
    },
    "links: at names of temporary files": Fault(
        exits=(1,), says="smoke.baseline", arguments=ENVIRONMENT, prepare=_links, meanwhile=_are_intact, slow=True
    ),
    "links: the output": Fault(
        exits=(0,),
        says="READY in",
        arguments=(*QUICK, "--output", "json={folder}/report.json"),
        prepare=_output_link,
        meanwhile=_was_followed,
        slow=True,
    ),
    **_on_disk(
        "the history", exits=(0,), says="not in the history", variables={"KDOCTOR_HISTORY": "{folder}/disk/h.db"}
    ),
    **_on_disk(
        "an output", exits=(2,), says="No space|Read-only", arguments=(*QUICK, "-o", "json={folder}/disk/r.json")
    ),
    **_on_disk(
        "the home folder",
        exits=(0,),
        says="not in the history",
        variables={"HOME": "{folder}/disk", "KDOCTOR_HISTORY": None, "XDG_STATE_HOME": None},
    ),
    **_on_disk(
        "temporary files",
        _failing_import,
        exits=(1,),
        says="smoke.baseline",
        arguments=ENVIRONMENT,
        variables={"TMPDIR": "{folder}/disk"},
    ),
}
