from site_checks.scratch import Scratch, scratch_space

from kdoctor.model import Status
from kdoctor.testing import compute_check


def test_free_space_passes() -> None:
    result = compute_check(scratch_space, Scratch(free_bytes=200 * 2**30))
    assert result.status is Status.PASS


def test_full_disk_fails() -> None:
    result = compute_check(scratch_space, Scratch(free_bytes=2**30), least_gib=50)
    assert result.findings[0].finding.subject == "/scratch"


def test_missing_directory_is_unknown() -> None:
    result = compute_check(scratch_space, missing={Scratch: "/scratch: No such file or directory"})
    assert result.status is Status.UNKNOWN
