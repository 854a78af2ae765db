from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import v100
from kdoctor_checks.gpu._memory import bad_memory, replacement_pending, worn_out


@cases(
    ({}, ()),
    ({"retired_pages_single_bit": 50, "retired_pages_double_bit": 9}, ()),
    ({"retired_pages_single_bit": 50, "retired_pages_double_bit": 10}, ("gpu.retired-pages",)),
    ({"retired_pages_single_bit": None, "retired_pages_double_bit": 59}, ()),
    ({"retired_pages_single_bit": 59, "retired_pages_double_bit": None}, ()),
    ({"retired_pages_single_bit": None, "retired_pages_double_bit": 60}, ("gpu.retired-pages",)),
    ({"remapped_rows_failure": True, "sram_threshold_exceeded": True}, ("gpu.row-remapping", "gpu.sram-errors")),
)
def test_counters_of_worn_out_memory(change: dict[str, Any], causes: tuple[str, ...]) -> None:
    assert worn_out(v100(0, **change)) == causes


@pytest.mark.parametrize(("errors", "causes"), [(None, ()), (0, ()), (1, ("gpu.ecc-errors",))])
def test_errors_since_the_driver_was_loaded_are_bad_memory(errors: int | None, causes: tuple[str, ...]) -> None:
    assert bad_memory(v100(0, ecc_uncorrected_volatile=errors)) == causes


@pytest.mark.parametrize(("action", "causes"), [(None, ()), ("none", ()), ("reset", ("gpu.recovery-action",))])
def test_wanted_reset_explains_what_waits_for_it(action: str | None, causes: tuple[str, ...]) -> None:
    assert replacement_pending(v100(0, recovery_action=action)) == causes
