"""Environment markers of the target interpreter; the checks of packages try the others."""

import pytest

from helpers.facts import target
from kdoctor.commands.markers import marker_environment


@pytest.mark.parametrize(("version", "short"), [("3.11.7", "3.11"), ("3.9", "3.9"), ("3.13.0rc1", "3.13")])
def test_marker_has_two_numbers_of_the_python_version(version: str, short: str) -> None:
    values = marker_environment(target(version=version))
    assert (values["python_version"], values["python_full_version"]) == (short, version)
