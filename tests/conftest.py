"""Set-up of the test process, and fixtures for all tests."""

import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from helpers.extensions import missing_extensions
from helpers.tiers import TODAY
from kdoctor.catalog.load import Catalog, load_catalog
from kdoctor.commands import again

# Processes that a shell starts in the background ignore SIGINT, and so do their children. Tests of interrupted runs
# need the default handler.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No property depends on how busy the machine is.
settings.register_profile("any-load", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-load")

# Each process of a run draws the tests of the same day, also at midnight.
os.environ["KDOCTOR_TEST_DAY"] = str(TODAY)
# What a test checks must not appear in the history of the person who runs it.
os.environ["KDOCTOR_NO_HISTORY"] = "1"
# Screens are the same whether or not root runs the tests, on a machine without sudo or without a GPU.
again.root_without_sudo, again.has_driver = False, True

_MEMORY = Path("/dev/shm")  # noqa: S108 - the tests' folders in it are only for their user
_NEEDED_BYTES = 8 << 30


def _holds_temporary_files(folder: Path) -> bool:
    """Whether programs in a folder can run, and it has room."""
    if not os.access(folder, os.W_OK):
        return False
    state = os.statvfs(folder)
    return not state.f_flag & os.ST_NOEXEC and state.f_bavail * state.f_frsize > _NEEDED_BYTES


# The described machines have thousands of files, which a virtual machine's disk can take longer for than all else.
if "TMPDIR" not in os.environ and _holds_temporary_files(_MEMORY):
    tempfile.tempdir = os.environ["TMPDIR"] = str(_MEMORY)


class _Screen(SingleFileSnapshotExtension):
    """Store each screen as a text file, so that reviews show changes of wording."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the tests of the core that use an extension which is not installed."""
    file = collection_path / "conftest.py" if collection_path.is_dir() else collection_path
    return True if file.suffix == ".py" and file.is_file() and missing_extensions(file) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules that train come first: a long one at the end would leave the other processes without work."""
    training = {item.path for item in items if item.get_closest_marker("tensorflow")}
    items.sort(key=lambda item: item.path not in training)
    # It takes seconds and a gigabyte in each process of the tests. A training is a child.
    assert "tensorflow" not in sys.modules, "a test imports TensorFlow when it is collected"


@pytest.fixture
def screen(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """The reviewed text of a whole screen: ``assert text == screen``. ``make snapshots`` rewrites the files."""
    return snapshot.use_extension(_Screen)


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """The installed checks and checklists."""
    return load_catalog()
