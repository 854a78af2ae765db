"""Short names that distinguish the machines and environments of several runs."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import PurePath

_BINARIES = ("bin", "Scripts")
_COMMON = (".venv", "venv", "env")
"""Names that many environments have. They are shown with the folder above."""


def series_names(pairs: Iterable[tuple[str, str]]) -> Mapping[tuple[str, str], str]:
    """Host and interpreter to a short name; an empty one if all are the same."""
    known = sorted(set(pairs))
    targets = short_paths(target for _, target in known)
    several_hosts, several_targets = len({host for host, _ in known}) > 1, len(targets) > 1
    return {
        (host, target): ":".join([host] * several_hosts + [targets[target]] * several_targets) for host, target in known
    }


def short_paths(paths: Iterable[str]) -> Mapping[str, str]:
    """The shortest ending of each path that no other path has.

    The ``bin/python`` of an environment is left out where the rest is unique.
    """
    known = sorted(set(paths))
    folders = {path: _environment(PurePath(path)) for path in known}
    times = Counter([*folders.values(), *map(PurePath, known)])
    shown = {path: folder if times[folder] == 1 else PurePath(path) for path, folder in folders.items()}
    return {
        path: _ending(place, [other for other in shown.values() if other != place]) for path, place in shown.items()
    }


def _environment(path: PurePath) -> PurePath:
    return path.parent.parent if path.parent.name in _BINARIES else path


def _ending(place: PurePath, others: Iterable[PurePath]) -> str:
    taken = [other.parts for other in others]
    parts = place.parts
    if len(parts) <= 2:  # noqa: PLR2004 - the root and one folder, such as /usr
        return str(place)
    for length in range(2 if place.name in _COMMON else 1, len(parts)):
        if all(other[-length:] != parts[-length:] for other in taken):
            return str(PurePath(*parts[-length:]))
    return str(place)
