"""Builders of the job's Python environment: interpreter, packages, TensorFlow, Keras, variables."""

from typing import Any

from helpers.facts.base import SITE
from kdoctor.facts import Environment, KerasChoice, Package, Packages, Target, TensorFlowBuild, canonical_name
from kdoctor.testing import healthy


def target(**changes: Any) -> Target:
    """A virtual environment of CPython 3.11 on Linux."""
    return healthy(Target, **changes)


def package(name: str, version: str | None = "1.0", *requires: str, requires_python: str | None = None) -> Package:
    """One installed distribution and its requirements."""
    return Package(
        name=canonical_name(name),
        version=version,
        location=SITE,
        requires=requires,
        requires_python=requires_python,
        installer="pip",
    )


def packages(*installed: Package, has_pip: bool | None = True) -> Packages:
    """The given distributions, or those of a small healthy TensorFlow 2.21 environment."""
    found = tuple(sorted(installed, key=lambda item: item.name)) or healthy(Packages).installed
    return healthy(Packages, installed=found, has_pip=has_pip)


def tensorflow(**changes: Any) -> TensorFlowBuild:
    """TensorFlow 2.21.0 from its Linux wheel, according to its build_info.py."""
    return healthy(TensorFlowBuild, **changes)


def keras(**changes: Any) -> KerasChoice:
    """Keras 3.15.1 on the TensorFlow backend."""
    return healthy(KerasChoice, **changes)


def environment(**variables: str) -> Environment:
    """Only these variables, of those that the probe reads."""
    return healthy(Environment, variables=variables)
