"""Rows of the version matrix about what distributed Keras does, and what they say about a release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal

from packaging.version import Version
from pydantic import AfterValidator, BeforeValidator, Field

from kdoctor.matrix.values import Date, Positive, Sources, Text, Texts, VersionText, parse_version
from kdoctor.records import record
from kdoctor.yamldoc.validation import StrictPart, invalid, strings_of

Package = Literal["keras", "tf_keras"]

FeatureResult = Literal["right", "wrong", "raises", "hangs", "crashes", "unsupported"]
"""What a release does with a feature: it matches one device; it trains or reports something else without an error; it
raises an error; it does not end; its process dies; it does not have the feature."""

VERBS: dict[FeatureResult, str] = {
    "right": "right",
    "wrong": "wrong without an error",
    "raises": "raises an error",
    "hangs": "hangs",
    "crashes": "crashes",
    "unsupported": "not supported",
}
"""The results as a report states them."""

BASELINE = "baseline/mirrored"
"""The feature that every job has, measured with every release."""
HARMLESS: tuple[FeatureResult, ...] = ("right", "unsupported")


def _some_releases(releases: tuple[str, ...]) -> tuple[str, ...]:
    if not releases:
        raise invalid("names no release")
    if len(set(releases)) < len(releases):
        raise invalid("names a release twice")
    return releases


Releases = Annotated[
    tuple[VersionText, ...], Field(strict=False), BeforeValidator(strings_of), AfterValidator(_some_releases)
]


class MeasuredFeature(StrictPart):
    """A feature of jobs: a case of a smoke scenario."""

    feature: Text
    """``features/clipnorm``: a scenario and its case."""
    title: Text
    """Its name for people."""
    version: Positive = 1
    """The version of the scenario that measured it."""
    checks: Texts = ()
    """The checks that judge it."""
    source: Sources = ()


class KerasRelease(StrictPart):
    """A release whose features were measured, and with what."""

    package: Package
    release: VersionText
    tensorflow: VersionText
    python: VersionText
    measured: Date
    """The day of its oldest measurement."""
    times: Positive = 1
    """How often each defect was measured, with the same result."""
    source: Sources


class KerasFeature(StrictPart):
    """What some releases of Keras do with a feature of a job over several replicas."""

    feature: Text
    """A feature of the section ``features``."""
    package: Package
    releases: Releases
    """The measured releases."""
    result: FeatureResult
    observed: Text
    """What was measured, with its numbers."""
    source: Sources


@record
class KnownFeature:
    """What is known about one release and one feature."""

    feature: str
    result: FeatureResult | None
    """None if that is not known."""
    observed: str
    """What was measured; empty if that is not known."""
    basis: str
    """Whether this release was measured, or which others."""
    measured: bool = True
    """Whether this release itself was measured."""


def known_feature(rows: Sequence[KerasFeature], feature: str, package: str, version: str) -> KnownFeature:
    """What a release does with a feature.

    A release between two measured ones with the same result has that result. Everything else is unknown.

    Raises:
        packaging.version.InvalidVersion: the version is not valid.
    """
    return _known([row for row in rows if (row.feature, row.package) == (feature, package)], feature, package, version)


def _known(rows: Iterable[KerasFeature], feature: str, package: str, version: str) -> KnownFeature:
    wanted = parse_version(version)
    # Rows of a later file come last and count.
    measured = {parse_version(release): (release, row) for row in rows for release in row.releases}
    if wanted in measured:
        _, row = measured[wanted]
        return KnownFeature(
            feature=feature, result=row.result, observed=row.observed, basis=f"measured with {package} {version}"
        )
    below = max((key for key in measured if key < wanted), default=None)
    above = min((key for key in measured if key > wanted), default=None)
    if below is None or above is None:
        return _unknown(feature, f"{package} {version} was not measured{_nearest(below or above, newer=above is None)}")
    (old, before), (new, after) = measured[below], measured[above]
    if before.result != after.result:
        basis = f"{package} {version} was not measured; {old}: {VERBS[before.result]}, {new}: {VERBS[after.result]}"
        return _unknown(feature, basis)
    basis = f"{package} {version} was not measured, but {old} and {new} were"
    return KnownFeature(feature=feature, result=after.result, observed=after.observed, basis=basis, measured=False)


def measured_result(rows: Sequence[KerasFeature], feature: str, package: str, version: str) -> FeatureResult | None:
    """The result of a release that was itself measured; None for any other."""
    known = known_feature(rows, feature, package, version)
    return known.result if known.measured else None


def _unknown(feature: str, basis: str) -> KnownFeature:
    return KnownFeature(feature=feature, result=None, observed="", basis=basis, measured=False)


def _nearest(release: Version | None, *, newer: bool) -> str:
    if release is None:
        return ", and no other release was"
    return f"; the {'newest' if newer else 'oldest'} measured release is {release}"


def features_of(rows: Iterable[KerasFeature], package: str | None = None) -> tuple[str, ...]:
    """The measured features, in order."""
    return tuple(dict.fromkeys(row.feature for row in rows if package in (None, row.package)))


def defects(rows: Sequence[KerasFeature], package: str, version: str) -> Iterator[KnownFeature]:
    """The features that a release gets wrong or that end a job, as measured.

    Yields nothing for a version that is not valid.
    """
    try:
        parse_version(version)
    except ValueError:  # not a version, or one of thousands of digits
        return
    by_feature: dict[str, list[KerasFeature]] = {}
    for row in rows:
        if row.package == package:
            by_feature.setdefault(row.feature, []).append(row)
    for feature, of_feature in by_feature.items():
        known = _known(of_feature, feature, package, version)
        if known.result is not None and known.result not in HARMLESS:
            yield known
