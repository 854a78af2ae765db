"""The checks by id."""

from __future__ import annotations

from kdoctor.plugins.catalog import load_catalog
from kdoctor_checks import checks

BUILT_IN = {check.id: check for check in checks()}
"""The core's."""
ALL = load_catalog().checks
"""Those of the installed extensions, too."""
FAMILIES = {check.family for check in ALL.values()}


def of_installed(ids: object) -> set[str]:
    """The ids whose family is installed: tests of the core may name checks of an extension that is not there."""
    assert isinstance(ids, (set, frozenset, list, tuple))
    return {name for name in ids if name.partition(".")[0] in FAMILIES}
