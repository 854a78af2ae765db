"""Reads the two sides of a comparison: from files, or from a revision of a git repository."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from kdoctor.catalog.load import Catalog
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.problems import ChecklistError, Problem
from kdoctor.checklist.resolve import Checklist
from kdoctor.commands.shell import quoted
from kdoctor.errors import UsageError, did_you_mean
from kdoctor.lock.document import Lock, loads
from kdoctor.lock.record import expectations_of
from kdoctor.lock.store import load_lock, lock_path
from kdoctor.probes.process.child import ChildEnd
from kdoctor.records import record
from kdoctor.text.lists import some

Git = Callable[[Sequence[str]], "ChildEnd"]
"""Runs git with these arguments."""

_LARGEST_BYTES = 60 * 1024
"""Output of a child process that is certainly complete."""


@record
class Side:
    """A checklist, with the lock next to it."""

    shown: str
    checklist: Checklist
    lock: Lock | None = None
    expectations: str = ""
    """Digest of what the checklist expects."""


def from_files(name_or_path: str, catalog: Catalog, *, at: Path | None = None) -> Side:
    """A checklist from the disk, or a shipped one.

    Args:
        name_or_path: which checklist.
        catalog: the shipped checklists, and what a checklist may name.
        at: the path in the repository, if the file is a copy; a copy has no lock.

    Raises:
        ChecklistError: it cannot be used.
        LockError: the lock next to it cannot be used.
    """
    checklist = load_checklist(name_or_path, catalog, at=at)
    lock = load_lock(checklist)[1] if at is None and checklist.source != "shipped" else None
    return Side(shown=name_or_path, checklist=checklist, lock=lock, expectations=expectations_of(checklist))


def from_git(revision: str, path: Path, catalog: Catalog, git: Git) -> Side | None:
    """The checklist in a revision; None if it has no such file.

    Raises:
        UsageError: git, the repository or the revision does not exist.
        ChecklistError: it cannot be used.
        LockError: the lock next to it cannot be used.
    """
    tree = _Tree(revision, git, path)
    if tree.size(path) is None:
        return None
    checklist = load_checklist(str(path), catalog, read=tree.read)
    shown = f"{path} at {revision}"
    locked = lock_path(checklist)
    lock = loads(tree.read(locked), f"{locked} at {revision}") if tree.size(locked) is not None else None
    return Side(shown=shown, checklist=checklist, lock=lock, expectations=expectations_of(checklist))


class _Tree:
    """The files of a revision."""

    def __init__(self, revision: str, git: Git, path: Path) -> None:
        self._git = git
        self._revision = revision
        folder = path.absolute().parent
        while not folder.is_dir():
            folder = folder.parent
        top = self._run(["-C", str(folder), "rev-parse", "--show-toplevel"])
        if not top.ok:
            raise UsageError(f"{path} is not in a git repository", hint=_words(top))
        self._top = Path(top.chatter.strip())
        commit = self._run(
            ["-C", str(self._top), "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"]
        )
        if not commit.ok:
            branch = revision.removeprefix("origin/")
            names = self._run(["-C", str(self._top), "for-each-ref", "--format=%(refname:short)"]).chatter.split()
            has_origin = "origin" in self._run(["-C", str(self._top), "remote"]).chatter.split()
            wanted = "BRANCH" if branch == revision else quoted(branch)
            hint = f"In a shallow clone, fetch it first: git fetch origin {wanted}" if has_origin else None
            near = did_you_mean(branch, names) or f"; there are {some(names)}"
            raise UsageError(f"--base {revision}: unknown revision{near}", hint=hint)
        self._commit = commit.chatter.strip()

    def size(self, path: Path) -> int | None:
        """The file's size in bytes, or None if the revision has no such file."""
        end = self._run(["-C", str(self._top), "cat-file", "-s", self._name(path)])
        return int(end.chatter) if end.ok else None

    def read(self, path: Path) -> bytes:
        """The file's content.

        Raises:
            ChecklistError: it does not exist, or is too large.
        """
        size = self.size(path)
        if size is None:
            raise _problem(f"{path} at {self._revision}", "no such file in this revision")
        if size > _LARGEST_BYTES:
            raise _problem(f"{path} at {self._revision}", f"too large to be read from git ({size} bytes)")
        return self._run(["-C", str(self._top), "cat-file", "blob", self._name(path)]).chatter.encode()

    def _name(self, path: Path) -> str:
        return f"{self._commit}:{Path(os.path.relpath(os.path.realpath(path), os.path.realpath(self._top))).as_posix()}"

    def _run(self, arguments: Sequence[str]) -> ChildEnd:
        try:
            return self._git(arguments)
        except OSError as error:
            raise UsageError(f"--base needs git, which could not be started: {error.strerror or error}") from error


def _problem(shown: str, message: str) -> ChecklistError:
    return ChecklistError(shown, [Problem(line=None, column=None, message=message)])


def _words(end: ChildEnd) -> str | None:
    """Git's error: its first line that says ``fatal``, after which notes can follow, or the last line."""
    lines = [line for line in end.stderr.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("fatal: ")), lines[-1] if lines else None)
