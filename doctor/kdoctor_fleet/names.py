"""Names of nodes: which are valid, and sets of them in the notation of Slurm and ClusterShell."""

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from kdoctor.commands.packages import install_extra
from kdoctor.errors import UsageError
from kdoctor.inputs import read_bounded
from kdoctor_fleet.facts import Nodes

MOST_NODES = 1_000_000
"""A set of nodes with more is a mistake, and would take all memory."""

_MOST_BYTES = 64 * 2**20
"""Bytes of a file that names nodes: a million names of 60 characters."""
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
"""Names of hosts, and of Kubernetes' nodes (RFC 1123). No other character reaches a file name, a command or a page."""


def _node_sets() -> ModuleType:
    """ClusterShell's module of node sets, imported where it is used: the help of the commands does without it."""
    try:
        from ClusterShell import NodeSet  # noqa: PLC0415 - an extra
    except ImportError as error:
        hint = f"Install it: {install_extra('fleet')}"
        raise UsageError("kdoctor fleet requires ClusterShell, which is not installed", hint=hint) from error
    module: ModuleType = NodeSet
    return module


def is_valid(name: str) -> bool:
    """Whether a name can be the name of a node."""
    return _NAME.fullmatch(name) is not None


def fold(names: Iterable[str]) -> Nodes:
    """``node[03,17-19]``: the names in short. Valid names only."""
    return _fold(tuple(names))


@lru_cache(maxsize=4096)  # many checks name the same nodes
def _fold(names: tuple[str, ...]) -> Nodes:
    sets = _node_sets()
    return Nodes.of(names, lambda every: str(sets.NodeSet.fromlist(list(every), resolver=sets.RESOLVER_NOGROUP)))


def expand(text: str, shown: str) -> tuple[str, ...]:
    """The names in a set such as ``node[001-064],login1``, in order.

    Groups of ClusterShell (``@gpu``) are refused, because to resolve them runs programs.

    Args:
        text: the set of nodes.
        shown: where it is from, for the message of an error.

    Raises:
        UsageError: it is not a set of nodes.
    """
    example = "Example: --expect node[001-064]"
    if "@" in text:
        raise UsageError(f"{shown}: groups such as {text} are not supported", hint=example)
    sets = _node_sets()
    try:
        nodes = sets.NodeSet(text, resolver=sets.RESOLVER_NOGROUP)
        if len(nodes) > MOST_NODES:
            raise UsageError(f"{shown}: more than {MOST_NODES} nodes", hint=example)
        names = tuple(nodes)
    except (sets.NodeSetException, ValueError, AssertionError, OverflowError) as error:
        raise UsageError(f"{shown}: not a set of nodes: {error}", hint=example) from error
    wrong = next((name for name in names if not is_valid(name)), None)
    if wrong is not None:
        raise UsageError(f"{shown}: {wrong!r} is not a name of a node", hint=example)
    if not names:
        raise UsageError(f"{shown}: names no node", hint=example)
    return names


def read_names(path: Path) -> tuple[str, ...]:
    """The nodes that a file names: sets of nodes, one a line. Empty lines and comments (``#``) are ignored.

    Raises:
        UsageError: the file cannot be read, or a line is not a set of nodes.
    """
    try:
        text = read_bounded(path, _MOST_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}") from error
    lines = [(number, line.partition("#")[0].strip()) for number, line in enumerate(text.splitlines(), 1)]
    names = [name for number, line in lines if line for name in expand(line, f"{path}:{number}")]
    if not names:
        raise UsageError(f"{path}: names no node")
    return tuple(dict.fromkeys(names))
