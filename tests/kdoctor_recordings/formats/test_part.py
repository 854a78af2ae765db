"""Addresses of PCI functions in the forms of several tools."""

from helpers.cases import cases
from kdoctor_recordings.formats.part import sysfs_bus_id


@cases(
    ("00000000:3B:00.0", "0000:3b:00.0"),
    ("0000:3b:00.0", "0000:3b:00.0"),
    ("3b:00.0", "0000:3b:00.0"),
    ("1:3b:1f.7", "0001:3b:1f.7"),
    ("00010000:3b:00.0", "10000:3b:00.0"),
    (" 3b:00.0\n", "0000:3b:00.0"),
    ("3b:00", None),
    ("3b:00.8", None),
    ("000000000:3b:00.0", None),
    ("", None),
)
def test_address_as_sysfs_writes_it(text: str, bus_id: str | None) -> None:
    assert sysfs_bus_id(text) == bus_id
