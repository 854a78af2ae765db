"""Changes kdoctor's code in small ways and counts the changes that the tests notice.

``make mutants SAMPLE=2000``. Each change (mutant) is tried against the test files that mirror its module, then against
the other tests of the package that call the function. Survivors are printed with file and line, rooms as they end.
Those that change nothing that a test could notice are in ``equivalent.txt`` with the reason.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
for source in ("tests", "checklists", "checks", "doctor"):
    sys.path.insert(0, str(ROOT / source))

from helpers.mutants.changes import Mutant, mutants  # noqa: E402 - the path is set above
from helpers.mutants.trials import Trials, try_at_import  # noqa: E402 - the path is set above

PACKAGES: Mapping[str, tuple[str, ...]] = {
    "checks": ("checks/kdoctor_checks", "tests/kdoctor_checks", "tests/kdoctor/report", "tests/kdoctor/run"),
    "engine": ("doctor/kdoctor/engine", "tests/kdoctor/engine", "tests/kdoctor/report", "tests/kdoctor/run"),
    "matrix": ("doctor/kdoctor/matrix", "tests/kdoctor/matrix", "tests/kdoctor_checks/versions"),
    "diff": ("doctor/kdoctor/diff", "tests/kdoctor/diff", "tests/kdoctor/lock", "tests/kdoctor/checklist"),
    "lock": ("doctor/kdoctor/lock", "tests/kdoctor/lock", "tests/kdoctor/rollback", "tests/kdoctor/diff"),
    "rollback": ("doctor/kdoctor/rollback", "tests/kdoctor/rollback", "tests/fuzz"),
    "importers": ("doctor/kdoctor_recordings/formats", "tests/kdoctor_recordings", "tests/kdoctor_checks"),
}
"""The code of each package, and folders with its tests; the room that mirrors a module comes first."""
KILLED = ("own tests", "other tests")
EQUIVALENT = Path(__file__).parent / "equivalent.txt"
PYTEST = ("-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", "--no-header", "-s")


def all_mutants(package: str) -> list[Mutant]:
    """Every mutant of a package, in the order of the files."""
    folder = ROOT / PACKAGES[package][0]
    return [
        mutant
        for path in sorted(folder.rglob("*.py"))
        for mutant in mutants(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))
    ]


def test_folder(path: str) -> Path:
    """The folder of tests that mirrors the folder of a module."""
    _, *rest = Path(path).parent.parts
    mirrored = ROOT / "tests" / Path(*rest)
    return mirrored if mirrored.is_dir() else mirrored.parent


def room(mutant: Mutant) -> str:
    """The folder with the tests of its package."""
    return PACKAGES[package_of(mutant)][1]


def package_of(mutant: Mutant) -> str:
    """The package of a mutant."""
    return next(name for name, (code, *_) in PACKAGES.items() if mutant.path.startswith(code + "/"))


def own_tests(path: str) -> list[Path]:
    """The test files that mirror a module: ``test_loaded.py``, ``test_loaded_more.py``; for a private module, its name."""
    name = Path(path).stem.strip("_")
    return [file for file in sorted(test_folder(path).glob(f"test_{name}*.py")) if file.is_file()]


def equivalents() -> dict[tuple[str, str, str], str]:
    """Path, line of code and change of each mutant that no test can notice, with the reason."""
    found = {}
    for line in EQUIVALENT.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            path, code, change, reason = line.split(" | ")
            found[path, code, change] = reason
    return found


def key(mutant: Mutant) -> tuple[str, str, str]:
    """What identifies a mutant when lines have moved."""
    code = (ROOT / mutant.path).read_text(encoding="utf-8").splitlines()[mutant.line - 1].strip()
    return mutant.path, code, mutant.change


def try_all(wanted: Sequence[Mutant], *, thorough: bool, tests: Sequence[str] = ()) -> Iterator[tuple[Mutant, str]]:
    """Each mutant and what noticed it, by room, or with the given folders and files of tests.

    A thorough run also tries the other tests of the package, and code that only runs at import or in other processes.
    """
    loading = [mutant for mutant in wanted if mutant.function is None]
    survivors = []
    for mutant, verdict in _in_rooms(wanted, lambda mutant: tuple(tests) or (room(mutant),)):
        if verdict in KILLED or not thorough:
            yield mutant, verdict
        else:
            survivors.append(mutant)
    for mutant, verdict in _in_rooms(survivors, lambda mutant: PACKAGES[package_of(mutant)][1:]):
        if verdict == "not called":
            loading.append(mutant)
        else:
            yield mutant, verdict
    for mutant in loading:
        yield mutant, _with_import(mutant)


def _in_rooms(
    wanted: Sequence[Mutant], folders_of: Callable[[Mutant], tuple[str, ...]]
) -> Iterator[tuple[Mutant, str]]:
    """Try mutants of functions, in one process for each set of folders."""
    rooms: dict[tuple[Path, ...], list[Mutant]] = defaultdict(list)
    for mutant in wanted:
        if mutant.function is not None:
            rooms[tuple(ROOT / folder for folder in folders_of(mutant))].append(mutant)
    for folders, chosen in sorted(rooms.items()):
        with multiprocessing.get_context("fork").Pool(1) as pool:
            yield from pool.apply(_run_room, (folders, chosen)).items()


def _with_import(mutant: Mutant) -> str:
    first = own_tests(mutant.path)
    if first and _apart(try_at_import, mutant, first, PYTEST) in KILLED:
        return "own tests"
    return "other tests" if _apart(try_at_import, mutant, [ROOT / room(mutant)], PYTEST) in KILLED else "survived"


def _apart(function: object, *arguments: object) -> str:
    """Call a function in a child that shares nothing with later ones."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return str(pool.apply(function, arguments))  # type: ignore[arg-type]


def _run_room(folders: Sequence[Path], chosen: Sequence[Mutant]) -> dict[Mutant, str]:
    import pytest

    trials = Trials(wanted=chosen, own_tests=own_tests)
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    pytest.main([*map(str, folders), *PYTEST], plugins=[trials])
    if len(trials.verdicts) < len(chosen):
        print(f"pytest ended too early in {folders[0]}", file=sys.stderr, flush=True)
    return {**dict.fromkeys(chosen, "not tried"), **trials.verdicts}


def table(verdicts: Mapping[Mutant, str], answered: Mapping[tuple[str, str, str], str]) -> str:
    """Mutants and kills by package, and the survivors."""
    lines = [
        f"{'package':<12}{'mutants':>9}{'own tests':>11}{'other tests':>13}{'equivalent':>12}{'survived':>10}{'killed':>9}"
    ]
    counts: dict[str, Counter[str]] = {name: Counter() for name in PACKAGES}
    survivors = []
    for mutant, verdict in verdicts.items():
        package = package_of(mutant)
        kind = verdict if verdict in KILLED else "equivalent" if key(mutant) in answered else "survived"
        counts[package][kind] += 1
        if kind == "survived":
            survivors.append(f"{mutant} ({verdict}) | {' | '.join(key(mutant))}")
    for name, found in [*counts.items(), ("all", sum(counts.values(), Counter()))]:
        killed = found["own tests"] + found["other tests"]
        share = f"{killed / (killed + found['survived']):.1%}" if killed + found["survived"] else "-"
        lines.append(
            f"{name:<12}{found.total():>9}{found['own tests']:>11}{found['other tests']:>13}{found['equivalent']:>12}"
            f"{found['survived']:>10}{share:>9}"
        )
    return "\n".join([*lines, *sorted(survivors)])


def main() -> int:
    """Run the command line; 1 if fewer than the wanted share are killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=2000, help="number of mutants, 0 for all")
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--package", action="append", choices=list(PACKAGES), help="only this one (repeatable)")
    parser.add_argument("--file", action="append", help="only modules whose path contains this (repeatable)")
    parser.add_argument("--tests", action="append", default=[], help="only these tests: a folder or file (repeatable)")
    parser.add_argument("--part", default="1/1", help="2/5 tries the second of five parts of the sample")
    parser.add_argument("--least", type=float, default=0.0, help="share of killed mutants below which this fails")
    parser.add_argument(
        "--thorough",
        action="store_true",
        help="also the other tests of the package, and code that runs at import or in processes of tests (slow)",
    )
    options = parser.parse_args()
    found = [mutant for name in options.package or PACKAGES for mutant in all_mutants(name)]
    found = [mutant for mutant in found if not options.file or any(part in mutant.path for part in options.file)]
    found = [mutant for mutant in found if options.thorough or mutant.function is not None]
    random = Random(options.seed)
    wanted = random.sample(found, options.sample) if 0 < options.sample < len(found) else found
    number, parts = map(int, options.part.split("/"))
    wanted = wanted[number - 1 :: parts]
    print(f"{len(wanted)} of {len(found)} mutants, seed {options.seed}", flush=True)
    started = time.monotonic()
    verdicts = dict(try_all(wanted, thorough=options.thorough, tests=options.tests))
    print(table(verdicts, equivalents()))
    print(f"{time.monotonic() - started:.0f} s")
    answered = equivalents()
    lost = sum(verdict not in KILLED and key(mutant) not in answered for mutant, verdict in verdicts.items())
    return 1 if verdicts and 1 - lost / len(verdicts) < options.least else 0


if __name__ == "__main__":
    raise SystemExit(main())
