"""The checks by id."""

from collections.abc import Iterable

from kdoctor.catalog.load import load_catalog
from kdoctor_checks import checks

BUILT_IN = {check.id: check for check in checks()}
"""The core's."""
ALL = load_catalog().checks
"""Those of the installed extensions, too."""
FAMILIES = {check.family for check in ALL.values()}


def of_installed(ids: Iterable[str]) -> set[str]:
    """The ids whose family is installed: tests of the core may name checks of an extension that is not there."""
    return {name for name in ids if name.partition(".")[0] in FAMILIES}
