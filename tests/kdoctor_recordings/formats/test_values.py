"""Texts of nvidia-smi and their values. A text that is not exactly a value has none."""

from typing import Any

import pytest

from helpers.cases import cases
from kdoctor_recordings.formats import values
from kdoctor_recordings.formats.values import NotKnownError, read_or_none

UUID = "GPU-0a1b2c3d-0000-1111-2222-333344445555"


@cases(
    (values.count, "0", 0),
    (values.count, " 12 ", 12),
    (values.count, "9" * 18, 10**18 - 1),
    (values.count, "9" * 19, None),
    (values.count, "-1", None),
    (values.mebibytes, "3 MiB", 3 * 1024 * 1024),
    (values.mebibytes, "3MiB", 3 * 1024 * 1024),
    (values.mebibytes, "3 TiB", None),
    (values.watts, "75.5 W", 75.5),
    (values.watts, "75W", 75.0),
    (values.watts, "75", None),
    (values.megahertz, "1410 MHz", 1410),
    (values.percent, "7 %", 7),
    (values.percent, "7%", 7),
    (values.degrees, "-3 C", -3),
    (values.degrees, "34C", 34),
    (values.threshold, "92 C", 92),
    (values.threshold, "0 C", None),
    (values.offset, "-2 C", -2),
    (values.offset, "0 C", 0),
    (values.offset, "1 C", None),
    (values.generation, "4", 4),
    (values.generation, "0", None),
    (values.width, "16x", 16),
    (values.width, "0x", None),
    (values.performance_state, "P12", 12),
    (values.uuid, UUID, UUID),
    (values.uuid, UUID[:-1], None),
    (values.enabled, "On", True),
    (values.enabled, "disabled", False),
    (values.active, "Not Active", False),
    (values.active, "not_active", False),
    (values.active, " Active ", True),
    (values.yes, "Yes", True),
    (values.yes, "N/A", None),
    (values.compute_mode, "E. Process", "exclusive-process"),
    (values.compute_mode, "Exclusive_Thread", "exclusive-thread"),
    (values.virtualization_mode, "Pass-Through", "passthrough"),
    (values.recovery_action, "Node Reboot", "reboot"),
    (values.fabric_state, "In Progress", "in-progress"),
    (values.fabric_status, "SUCCESS", "success"),
    (values.fabric_status, " Error  7 ", "Error 7"),
    (values.fabric_status, "n/a", None),
    (values.fabric_status, "", None),
    (values.free_text, "NVIDIA  Test ", "NVIDIA Test"),
    (values.free_text, "NVIDIA Test...", None),
    (values.mebibytes, "4095MB", 4095 * 1024**2),
    (values.free_text, "", None),
    (values.free_text, "[N/A]", None),
    (values.free_text, "Unknown Error", None),
    (values.version, "535.161.08", "535.161.08"),
    (values.version, "13.3 [Deprecated; will be removed]", "13.3"),
    (values.version, "535", None),
    (values.version, "N/A", None),
)
def test_value_of_a_text(read: values.Read, text: str, value: Any) -> None:
    assert read_or_none(read, text) == value
    if value is None:
        with pytest.raises(NotKnownError) as error:
            read(text)
        assert text.split()[-1:] == str(error.value).split()[-1:] or str(error.value) == "empty"


@pytest.mark.parametrize(("text", "reason"), [(" a  b\tc ", "a b c"), ("", "empty"), ("x" * 81, "x" * 80)])
def test_reason_for_a_missing_value_is_its_text(text: str, reason: str) -> None:
    assert str(values.not_known(text)) == reason
