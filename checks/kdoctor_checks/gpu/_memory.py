"""Shared by the checks of GPU memory: one bad memory cell shows in several counters."""

from kdoctor.facts import Gpu

_RETIREMENT_LIMIT = 60


def worn_out(gpu: Gpu) -> tuple[str, ...]:
    """The checks that report memory beyond repair, if the GPU's counters show it."""
    retired = (gpu.retired_pages_single_bit or 0) + (gpu.retired_pages_double_bit or 0)
    return (
        *(("gpu.row-remapping",) if gpu.remapped_rows_failure else ()),
        *(("gpu.sram-errors",) if gpu.sram_threshold_exceeded else ()),
        *(("gpu.retired-pages",) if retired >= _RETIREMENT_LIMIT else ()),
    )


def bad_memory(gpu: Gpu) -> tuple[str, ...]:
    """The same, and the check of uncorrected errors since the driver was loaded."""
    return (*worn_out(gpu), *(("gpu.ecc-errors",) if gpu.ecc_uncorrected_volatile else ()))


def replacement_pending(gpu: Gpu) -> tuple[str, ...]:
    """The checks that explain why memory waits for a reset to be replaced."""
    asks = gpu.recovery_action not in (None, "none")
    return (*bad_memory(gpu), *(("gpu.recovery-action",) if asks else ()))
