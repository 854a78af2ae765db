"""Writes the measured results as rows of the version matrix."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from benchmarks.truth.environments import Package
from benchmarks.truth.judge import Cell, rows
from packaging.version import Version

from kdoctor.catalog.load import Catalog
from kdoctor.smoke.scenario import Scenario

_SOURCE = "make-truth"
_HEAD = """\
# What distributed Keras does, feature by feature and release by release. Written by `make truth` from real trainings;
# docs/keras-truth.md is the page. It is a part of the version matrix: a custom matrix (--matrix) can add rows.
"""
_DOCUMENT = {
    "schema": "kdoctor/version-matrix/v1",
    "extends": "shipped",
    "updated": "",
    "platform": "linux-x86_64",
    "sources": {
        _SOURCE: "Measured by `make truth`: the smoke scenarios over 2 CPU replicas against one device with the same "
        "global batches"
    },
}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What was measured with one release."""

    package: Package
    release: str
    tensorflow: str
    python: str
    measured: str
    """The day of the oldest measurement in the table."""
    times: int
    """How often each defect was measured."""
    cells: Mapping[str, Cell]


def read_table(file: Path, catalog: Catalog, known: Sequence[str]) -> dict[tuple[Package, str], Measured]:
    """What an earlier measurement wrote about these features, by package and release.

    Features whose scenario has changed since then are left out.
    """
    table: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8")) if file.exists() else {}
    checks = {
        row["feature"]: tuple(row.get("checks", ()))
        for row in table.get("features", ())
        if row["feature"] in known and row.get("version", 1) == _scenario(row["feature"], catalog).version
    }
    cells: dict[tuple[Package, str], dict[str, Cell]] = {}
    for row in table.get("keras_features", ()):
        for release in row["releases"] if row["feature"] in checks else ():
            cell = Cell(row["result"], row["observed"], checks[row["feature"]])
            cells.setdefault((row["package"], release), {})[row["feature"]] = cell
    found = [
        Measured(
            **{name: row[name] for name in ("package", "release", "tensorflow", "python", "measured", "times")},
            cells=cells.get((row["package"], row["release"]), {}),
        )
        for row in table.get("keras_releases", ())
    ]
    return {(one.package, one.release): one for one in found if one.cells}


def combine(earlier: Measured | None, later: Measured) -> Measured:
    """What was measured with one release: later results replace earlier ones with the same TensorFlow."""
    if earlier is None or earlier.tensorflow != later.tensorflow:
        return later
    cells = {**earlier.cells, **later.cells}
    stay = any(cell.is_defect for feature, cell in earlier.cells.items() if feature not in later.cells)
    again = any(cell.is_defect for cell in later.cells.values())
    times = [one.times for one, has_defects in ((earlier, stay), (later, again)) if has_defects]
    return replace(later, measured=min(earlier.measured, later.measured), times=min(times, default=1), cells=cells)


def write_table(file: Path, catalog: Catalog, measured: Sequence[Measured]) -> None:
    """Write the file: by package, oldest release first."""
    found = sorted(measured, key=lambda one: (one.package, Version(one.release)))
    measured_features = dict.fromkeys(feature for one in found for feature in one.cells)
    features = sorted(measured_features, key=lambda feature: not _in_one_process(feature, catalog))
    parts: list[dict[str, object]] = [
        {**_DOCUMENT, "updated": max((one.measured for one in found), default="")},
        {"features": [_feature(feature, catalog, found) for feature in features]},
        {
            "keras_releases": [
                {
                    "package": one.package,
                    "release": one.release,
                    "tensorflow": one.tensorflow,
                    "python": one.python,
                    "measured": one.measured,
                    "times": one.times,
                    "source": _SOURCE,
                }
                for one in found
            ]
        },
        {"keras_features": _features(found, features)},
    ]
    texts = [yaml.safe_dump(part, sort_keys=False, width=118, default_flow_style=None) for part in parts]
    file.write_text(_HEAD + "\n" + "\n".join(texts), encoding="utf-8")


def _feature(feature: str, catalog: Catalog, found: Sequence[Measured]) -> dict[str, object]:
    judges = {check for one in found if feature in one.cells for check in one.cells[feature].checks}
    more = {
        check.id
        for check in catalog.checks.values()
        if check.family == "job"
        and _in_one_process(feature, catalog)  # as the checks of a job train it
        and any(set(check.failure_modes) & set(catalog.checks[name].failure_modes) for name in judges)
    }
    checks = [name for name in catalog.checks if name in judges | more]
    version = _scenario(feature, catalog).version
    return {
        "feature": feature,
        "title": title(feature, catalog),
        **({"version": version} if version > 1 else {}),
        **({"checks": checks} if checks else {}),
    }


def _scenario(feature: str, catalog: Catalog) -> Scenario:
    return catalog.scenarios[f"smoke.{feature.partition('/')[0]}"]


def _in_one_process(feature: str, catalog: Catalog) -> bool:
    return _scenario(feature, catalog).strategy == "mirrored"


def _features(found: Sequence[Measured], features: Sequence[str]) -> list[dict[str, object]]:
    packages: tuple[Package, ...] = ("keras", "tf_keras")
    results = {
        package: rows({one.release: one.cells for one in found if one.package == package}, package)
        for package in packages
    }
    ordered = [
        row for feature in features for package in packages for row in results[package] if row["feature"] == feature
    ]
    return [{**row, "source": _SOURCE} for row in ordered]


_TITLES: Mapping[str, str] = {"features/clipnorm": "clipnorm"}
"""Names for people where those of scenario and case do not say enough."""


def title(feature: str, catalog: Catalog) -> str:
    """A name for people, from the names of scenario and case."""
    if feature in _TITLES:
        return _TITLES[feature]
    scenario, _, case = feature.partition("/")
    only = len(_scenario(feature, catalog).cases) == 1
    named = case if scenario in ("features", "silent-features") else f"{scenario.removesuffix('-features')}: {case}"
    words = scenario if only else named
    return words.replace("-", " ")
