"""Reads ``/proc/driver/nvidia/version``."""

from kdoctor.facts import KernelDriver
from kdoctor.probes.kernel import parse_version
from kdoctor_recordings.formats.part import Part, Section

START = "NVRM version:"


def parse(section: Section) -> Part:
    """The version and flavour of the module. The file exists only while the module is loaded."""
    first = section.lines[0]
    cut = not section.whole and len(section.lines) == 1
    version, flavour = parse_version(first.rsplit(maxsplit=1)[0] if cut else first)
    driver = KernelDriver(loaded=True, version=version, flavour=flavour, nodes=None)
    return section.part(groups=(driver,))
