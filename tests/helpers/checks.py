"""The built-in checks by id, for tests of those that are data."""

from __future__ import annotations

from kdoctor_checks import checks

BUILT_IN = {check.id: check for check in checks()}
