"""What distributed Keras does, as text: for one release, and for one feature over all measured releases."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from packaging.specifiers import SpecifierSet

from kdoctor.matrix.keras import HARMLESS, VERBS, FeatureResult, KerasRelease, KnownFeature, defects
from kdoctor.matrix.model import Release, VersionMatrix
from kdoctor.matrix.values import parse_version
from kdoctor.records import record
from kdoctor.text.lists import counted, grouped, some


@record
class Span:
    """Neighbouring measured releases that do the same with a feature."""

    package: str
    releases: tuple[str, ...]
    result: FeatureResult
    observed: str
    """Of the newest of these releases."""

    @property
    def text(self) -> str:
        """``3.2.1 to 3.8.0: wrong without an error (weights differ by up to 0.18)``."""
        first, last = self.releases[0], self.releases[-1]
        named = last if first == last else f"{first} to {last}"
        return f"{named}: {VERBS[self.result]} ({self.observed})"


def spans(matrix: VersionMatrix, feature: str) -> Iterator[Span]:
    """What the measured releases of each package do with a feature, oldest first."""
    for package in dict.fromkeys(row.package for row in matrix.keras_features if row.feature == feature):
        releases = {
            release: row
            for row in matrix.keras_features
            if (row.feature, row.package) == (feature, package)
            for release in row.releases
        }
        ordered = sorted(releases, key=parse_version)
        for _, group in groupby(ordered, key=lambda release: releases[release].result):
            members = tuple(group)
            newest = releases[members[-1]]
            yield Span(package=package, releases=members, result=newest.result, observed=newest.observed)


def titles(matrix: VersionMatrix, features: Iterable[str]) -> list[str]:
    """The names of features for people, each once."""
    names = (matrix.features[feature].title if feature in matrix.features else feature for feature in features)
    return list(dict.fromkeys(names))


def describe(matrix: VersionMatrix, known: Sequence[KnownFeature], most: int | None = None) -> str:
    """``wrong without an error with clipnorm; raises an error with steps per execution``; empty without defects.

    Args:
        matrix: has the names of the features.
        known: the features; those without a defect are left out.
        most: how many features to name for each result; None for all.
    """
    parts = []
    for result, verb in VERBS.items():
        names = titles(matrix, [item.feature for item in known if item.result == result])
        if names and result not in HARMLESS:
            parts.append(f"{verb} with {some(names, most) if most else by_scenario(names)}")
    return "; ".join(parts)


def by_scenario(names: Iterable[str]) -> str:
    """All names; ``losses: scalar loss`` and others of the same scenario once: ``losses (scalar loss, mean)``."""
    found = grouped((scenario, case) for scenario, _, case in (name.partition(": ") for name in names))
    return ", ".join(name if cases == [""] else f"{name} ({', '.join(cases)})" for name, cases in found.items())


def features_of_checks(matrix: VersionMatrix, checks: Iterable[str]) -> list[str]:
    """The features that these checks judge."""
    wanted = set(checks)
    return [name for name, feature in matrix.features.items() if wanted & set(feature.checks)]


@record
class KerasOnReplicas:
    """What a measured release of Keras does with several replicas."""

    package: str
    release: str
    features: int
    """Number of measured features that it has."""
    defects: tuple[KnownFeature, ...]

    def text(self, matrix: VersionMatrix, most: int | None = None) -> str:
        """In one sentence; ``most`` as in :func:`describe`."""
        if not self.defects:
            return f"{counted(self.features, 'measured feature')}, no defect"
        found = describe(matrix, self.defects, most)
        return f"{len(self.defects)} of {counted(self.features, 'measured feature')} fail: {found}"


def for_release(matrix: VersionMatrix, release: Release) -> list[KerasOnReplicas]:
    """The newest measured Keras that a TensorFlow release accepts, and its tf_keras, as far as they were measured."""
    chosen: list[KerasRelease] = []
    for name in ("keras", "keras-nightly"):
        requirement = release.requirement(name)
        if requirement is not None:
            chosen += _newest(matrix, requirement.specifier, prereleases=name == "keras-nightly")
    chosen += [row for row in matrix.keras_releases if (row.package, row.release) == ("tf_keras", release.tf_keras)]
    return [_on_replicas(matrix, row) for row in chosen]


def _newest(matrix: VersionMatrix, wanted: SpecifierSet, *, prereleases: bool) -> list[KerasRelease]:
    fitting = [
        row
        for row in matrix.keras_releases
        if row.package == "keras"
        and parse_version(row.release).is_prerelease == prereleases
        and wanted.contains(row.release, prereleases=True)
    ]
    return [max(fitting, key=lambda row: parse_version(row.release))] if fitting else []


def _on_replicas(matrix: VersionMatrix, row: KerasRelease) -> KerasOnReplicas:
    measured = {
        item.feature
        for item in matrix.keras_features
        if item.package == row.package and row.release in item.releases and item.result != "unsupported"
    }
    found = defects(matrix.keras_features, row.package, row.release)
    return KerasOnReplicas(
        package=row.package,
        release=row.release,
        features=len(measured),
        defects=tuple(item for item in found if item.measured),
    )
