"""The page about what distributed Keras does."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docs.generator.markdown import escaped
from packaging.version import Version

from kdoctor.catalog.load import Catalog
from kdoctor.matrix.keras import HARMLESS, measured_result
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.model import VersionMatrix
from kdoctor.matrix.truth import spans

ORACLE = Path(__file__).parents[1] / "keras-oracle.json"
_TRUTH = """\
# What distributed Keras does

Each feature of a job was trained over two CPU replicas and compared with one device on the same global batches, with
real releases of Keras. `make truth` creates the environments, runs kdoctor's smoke scenarios in each, and writes the
table (`checklists/kdoctor_checklists/matrices/keras-truth.yaml`). A feature with a defect is measured again, unless
column *defects* says once; a feature with two different results is left out. The verdicts are those of kdoctor's
checks. The page of each check and `kdoctor explain NAME` show the rows that they judge.

- *right*: it matches one device, or does what the scenario expects.
- **wrong**: it trains without an error, but does not match one device.
- **raises**, **hangs**, **crashes**: the training ends that way.
- *none*: the release does not have the feature.
- Empty: not measured, or with two different results.

Column *measured* is the day of the oldest measurement of a release, and *features* how many of them were measured.

A release between two measured ones with the same result is assumed to have that result, and kdoctor says so. Every
other release is unknown. A custom matrix (`--matrix`) adds rows in the sections `features`, `keras_releases` and
`keras_features`; a row about a release replaces the shipped result.

## Measured releases

"""
_CELLS: Mapping[str, str] = {"right": "right", "unsupported": "none"}


def truth_page(catalog: Catalog) -> str:
    """What the measured releases of Keras do with each feature."""
    matrix = load_matrix(environ={})
    lines = ["| package | release | TensorFlow | Python | measured | features | defects |", "|---" * 7 + "|"]
    for row in matrix.keras_releases:
        results = [measured_result(matrix.keras_features, name, row.package, row.release) for name in matrix.features]
        count = f"{sum(result is not None for result in results)} of {len(results)}"
        times = "once" if row.times == 1 else f"{row.times} times"
        exactly = (row.package, row.release, row.tensorflow, row.python, row.measured)
        lines.append(f"| {' | '.join(exactly)} | {count} | {times} |")
    scenarios = dict.fromkeys(feature.partition("/")[0] for feature in matrix.features)
    for scenario in scenarios:
        known = catalog.scenarios.get(f"smoke.{scenario}")
        title = known.title if known else scenario
        features = [feature for feature in matrix.features if feature.startswith(f"{scenario}/")]
        lines += ["", f"## {title}", "", f"Scenario `smoke.{scenario}`.", "", *_truth_table(matrix, features)]
        lines += _truth_details(matrix, features)
    return _TRUTH + "\n".join(lines) + "\n" + _oracle()


def _truth_table(matrix: VersionMatrix, features: list[str]) -> Iterator[str]:
    releases = matrix.keras_releases
    yield f"| feature | {' | '.join(f'{row.package} {row.release}' for row in releases)} |"
    yield "|---" * (len(releases) + 1) + "|"
    for feature in features:
        known = [measured_result(matrix.keras_features, feature, row.package, row.release) for row in releases]
        cells = ["" if result is None else _CELLS.get(result, f"**{result}**") for result in known]
        yield f"| {matrix.features[feature].title} | {' | '.join(cells)} |"


def _truth_details(matrix: VersionMatrix, features: list[str]) -> Iterator[str]:
    """What was observed of the features with a defect."""
    for feature in features:
        found = list(spans(matrix, feature))
        if any(span.result not in HARMLESS for span in found):
            yield from ("", f"{matrix.features[feature].title} (`kdoctor explain {feature}`):", "")
            yield from (f"- {span.package} {escaped(span.text)}" for span in found)


_HEAD_OF_ORACLE = """
## Tests of Keras and tf_keras

`make test-oracle` runs the distribution tests that the wheels of Keras contain, and the correctness test of tf_keras
(`keras_correctness_test_base.py`) with a small model of each package. Where a test of theirs fails, kdoctor must report
a defect of that release. Where theirs pass, each defect that kdoctor finds must be in the tables above. Nothing of
theirs is in this repository.

| package | release | measured | file | found in | passed | failed | skipped |
|---|---|---|---|---|---|---|---|
"""


def _oracle() -> str:
    """What upstream's own tests say, as recorded by ``make test-oracle``."""
    if not ORACLE.exists():
        return ""
    record: dict[str, Any] = json.loads(ORACLE.read_text(encoding="utf-8"))
    lines = []
    for row in sorted(record["rows"], key=lambda row: (row["package"], Version(row["release"]), row["suite"])):
        failed = f"{len(row['failed'])}: {', '.join(row['failed'])}" if row["failed"] else "0"
        counts = (str(len(row["passed"])), escaped(failed), str(len(row["skipped"])))
        cells = (row["package"], row["release"], row["measured"], f"`{row['suite']}`", row["source"], *counts)
        lines.append(f"| {' | '.join(cells)} |")
    return _HEAD_OF_ORACLE + "\n".join(lines) + "\n"
