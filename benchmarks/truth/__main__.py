"""Measures what distributed Keras does, feature by feature and release by release. ``make truth``.

For each release it creates an environment, runs the smoke scenarios of features over two CPU replicas, and stores the
facts below the folder. A second call continues where the first one ended. Features with a defect are measured twice.
At the end it writes the table (``keras-truth.yaml``); ``make site`` shows it. Rows of the table that were
not measured again stay, unless their scenario has changed. With ``--missing`` only what the table lacks is measured,
with ``--defects`` only its defects.
"""

import argparse
import datetime as dt
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.truth.environments import ENVIRONMENTS, BuildError, Environment, Package, build, installed
from benchmarks.truth.judge import Cell, feature_name, judge_run, runs_of
from benchmarks.truth.measure import DEADLINE_S, feature_scenarios, features
from benchmarks.truth.table import Measured, combine, read_table, write_table

from kdoctor.catalog.load import Catalog, load_catalog
from kdoctor.snapshot.document import load
from kdoctor.text.lists import counted

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "checklists/kdoctor_checklists/matrices/keras-truth.yaml"
_FILE_NAME = "%Y%m%dT%H%M%S"
"""The time at which a measurement began names its file."""
_AT_ONCE = 24
"""Features that are measured and stored together."""
_VERSIONS = "versions.json"
"""The exact packages of a release's environment, next to its measurements."""


class Measurement(NamedTuple):
    """One measurement of a feature."""

    day: str
    cell: Cell | None
    """None if no check has a verdict."""

    @property
    def is_defect(self) -> bool:
        """Whether it must be measured again."""
        return self.cell is not None and self.cell.is_defect


def main() -> int:
    """Measure, and write the table."""
    options = read_options()
    catalog = load_catalog()
    known = features(feature_scenarios(catalog))
    table = read_table(options.table, catalog, known)
    chosen = [item for item in ENVIRONMENTS if not options.only or item.keras in options.only]
    for environment in reversed(chosen if options.measure else []):  # the newest matter most
        try:
            python = build(environment, options.folder / "environments")
        except BuildError as error:
            _say(f"{environment.name}: not measured: {error}")
            continue
        for package in environment.packages:
            before = table.get((package, installed(python)[package]))
            cells = before.cells if before else {}
            wanted = [name for name in known if is_chosen(name, cells.get(name), options)]
            _measure_release(environment, package, python, wanted, catalog=catalog, options=options)
    for environment in ENVIRONMENTS:
        for package in environment.packages:
            if measured := _judge(catalog, environment, package, options.folder):
                key = (package, measured.release)
                table[key] = combine(table.get(key), measured)
    write_table(options.table, catalog, list(table.values()))
    _say(f"wrote {options.table}")
    return 0


def read_options() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="make truth", description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "build/truth", help="environments and measurements")
    parser.add_argument("--table", type=Path, default=TABLE, help="file to write")
    parser.add_argument("--only", action="append", metavar="RELEASE", help="measure this Keras only (repeatable)")
    parser.add_argument("--scenario", action="append", metavar="ID", help="measure this scenario only (repeatable)")
    limited = parser.add_mutually_exclusive_group()
    limited.add_argument("--missing", action="store_true", help="measure only what the table lacks")
    limited.add_argument("--defects", action="store_true", help="measure only the defects in the table")
    parser.add_argument("--times", type=int, default=2, help="measurements of a feature with a defect")
    parser.add_argument("--no-measure", dest="measure", action="store_false", help="judge what was measured before")
    return parser.parse_args()


def is_chosen(feature: str, known: Cell | None, options: argparse.Namespace) -> bool:
    """Whether to measure a feature that the table says this about."""
    if options.scenario and f"smoke.{feature.partition('/')[0]}" not in options.scenario:
        return False
    return known is not None and known.is_defect if options.defects else known is None or not options.missing


def _measure_release(  # noqa: PLR0913 - what to measure, and with what
    environment: Environment,
    package: Package,
    python: Path,
    chosen: Sequence[str],
    *,
    catalog: Catalog,
    options: argparse.Namespace,
) -> None:
    """Measure what has not been measured: first every feature, then those with a defect again."""
    for wanted in range(1, options.times + 1):
        done = _stored(catalog, _results(options.folder, environment, package))
        missing = [feature for feature in chosen if _lacks(done.get(feature, []), wanted)]
        for start in range(0, len(missing), _AT_ONCE):
            _measure(environment, package, python, missing[start : start + _AT_ONCE], options.folder)


def _lacks(done: Sequence[Measurement], wanted: int) -> bool:
    """Whether a feature must be measured once more."""
    return len(done) < wanted and (wanted == 1 or any(one.is_defect for one in done))


def _results(folder: Path, environment: Environment, package: Package) -> Path:
    return folder / "results" / f"{environment.name}-{package}"


def _stored(catalog: Catalog, results: Path) -> dict[str, list[Measurement]]:
    """The measurements of a release with today's versions of the scenarios, by feature, oldest first."""
    found: dict[str, list[Measurement]] = {}
    for file in sorted(results.glob("2*.json")):
        day = dt.datetime.strptime(file.stem, _FILE_NAME).replace(tzinfo=dt.timezone.utc).date().isoformat()
        facts = load(file, catalog.fact_groups).facts
        for scenario in feature_scenarios(catalog):
            run = runs_of(facts).get(scenario.id)
            if run is None or run.version != scenario.version:
                continue
            cells = judge_run(catalog, facts, run)
            for case in run.cases:
                feature = feature_name(scenario.id, case.name)
                found.setdefault(feature, []).append(Measurement(day, cells.get(feature)))
    return found


def _measure(environment: Environment, package: Package, python: Path, missing: Sequence[str], folder: Path) -> None:
    results = _results(folder, environment, package)
    results.mkdir(parents=True, exist_ok=True)
    (results / _VERSIONS).write_text(json.dumps(installed(python)), encoding="utf-8")
    output = results / f"{dt.datetime.now(dt.timezone.utc):{_FILE_NAME}}.json"
    _say(f"{environment.name}, {package}: {counted(len(missing), 'feature')}")
    started = time.monotonic()
    command = [sys.executable, "-m", "benchmarks.truth.measure", str(python), str(output), *missing]
    try:
        done = subprocess.run(
            ["nice", *command],  # noqa: S607 - found on PATH
            check=False,
            cwd=ROOT,
            env=_environ(package),
            timeout=DEADLINE_S + 120,
            capture_output=True,
            text=True,
        )
    except subprocess.TimeoutExpired:
        _say(f"{environment.name}, {package}: ended after {DEADLINE_S:.0f} s")
        return
    ended = "done" if done.returncode == 0 else f"exit status {done.returncode}: {done.stderr.strip()[-500:]}"
    _say(f"{environment.name}, {package}: {ended} in {time.monotonic() - started:.0f} s")


def _environ(package: Package) -> Mapping[str, str]:
    environ = {name: value for name, value in os.environ.items() if name != "TF_USE_LEGACY_KERAS"}
    environ |= {"KERAS_BACKEND": "tensorflow", "KDOCTOR_NO_HISTORY": "1"}
    return environ | ({"TF_USE_LEGACY_KERAS": "1"} if package == "tf_keras" else {})


def _judge(catalog: Catalog, environment: Environment, package: Package, folder: Path) -> Measured | None:
    """What was measured with a release, if anything. Features with two different results are left out, and reported."""
    results = _results(folder, environment, package)
    done = _stored(catalog, results)
    known = [feature for feature in features(feature_scenarios(catalog)) if feature in done]
    for feature in known:
        if len(found := {one.cell.result for one in done[feature] if one.cell}) > 1:
            _say(f"{results.name}: {feature} differs: {', '.join(sorted(found))}")
            del done[feature]
    cells = {feature: cell for feature in known if feature in done and (cell := done[feature][-1].cell)}
    if not cells:
        _say(f"{results.name} was not measured")
        return None
    versions = json.loads((results / _VERSIONS).read_text(encoding="utf-8"))
    return Measured(
        package=package,
        release=versions[package],
        tensorflow=versions["tensorflow"],
        python=versions["python"],
        measured=min(done[feature][-1].day for feature in cells),
        times=min((len(done[feature]) for feature in cells if done[feature][-1].is_defect), default=1),
        cells=cells,
    )


def _say(text: str) -> None:
    print(f"{dt.datetime.now(dt.timezone.utc):%H:%M:%S} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
