"""The first fix on the screen, pasted into the user's shell, makes the next run pass or show another cause first.

Every environment is real: pip installs the packages from the index into a copy of a healthy one (`make test-drill`).
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from drill.conftest import copy
from helpers.planted import Plant, Session

pytestmark = [pytest.mark.drill, pytest.mark.tensorflow]

PIP = "$PYTHON -m pip --quiet --disable-pip-version-check"
ALL = "--checklist cpu-smoke"
VERSIONS = f"{ALL} --no-smoke"
"""For defects that show without a training."""

PLANTS = (
    Plant(name="keras-3.6", options=ALL, breaks=f"{PIP} install keras==3.6.0", cause="versions.keras-compatible"),
    Plant(
        name="keras-3.6-without-pip",
        breaks=f"{PIP} install keras==3.6.0; rm -r $SITE/pip $SITE/pip-*",
        options=VERSIONS,
        cause="versions.keras-compatible",
        needs=("uv",),
    ),
    Plant(
        name="two-tensorflows",
        options=ALL,
        breaks=f"{PIP} install --no-deps tensorflow-cpu",
        cause="versions.one-tensorflow",
    ),
    Plant(name="protobuf-file-deleted", breaks="rm $SITE/google/protobuf/message.py", cause="versions.packages-intact"),
    Plant(
        name="protobuf-too-old", breaks=f"{PIP} install --no-deps protobuf==3.20.3", cause="versions.package-conflicts"
    ),
    Plant(name="numpy-1", breaks=f"{PIP} install --no-deps numpy==1.26.4", cause="versions.package-conflicts"),
    Plant(name="h5py-missing", breaks=f"{PIP} uninstall --yes h5py", cause="versions.package-conflicts"),
    Plant(name="tensorflow-missing", empty=True, cause="versions.tensorflow-installed"),
    Plant(name="tensorflow-folder-deleted", breaks="rm -r $SITE/tensorflow", cause="versions.tensorflow-installed"),
    Plant(name="keras-missing", breaks=f"{PIP} uninstall --yes keras", cause="versions.keras-compatible"),
    Plant(name="keras-folder-deleted", breaks="rm -r $SITE/keras", cause="versions.packages-intact"),
    Plant(name="legacy-keras-missing", profile="export TF_USE_LEGACY_KERAS=1", cause="versions.keras-compatible"),
    Plant(
        name="legacy-keras-of-another-release",
        breaks=f"{PIP} install --no-deps tf-keras==2.19.0",
        profile="export TF_USE_LEGACY_KERAS=1",
        options=VERSIONS,
        cause="versions.keras-compatible",
    ),
    Plant(name="jax-backend-in-the-shell", profile="export KERAS_BACKEND=jax", cause="versions.keras-compatible"),
    Plant(
        name="jax-backend-in-keras-json",
        breaks="""mkdir ~/.keras; echo '{"backend": "jax"}' > ~/.keras/keras.json""",
        cause="versions.keras-compatible",
    ),
    Plant(
        name="keras-py-on-pythonpath",
        breaks="mkdir lib; echo 'units = 4' > lib/keras.py",
        profile="export PYTHONPATH=$PWD/lib",
        cause="versions.packages-intact",
    ),
    Plant(
        name="sitecustomize-that-ends-python",
        breaks="echo 'raise SystemExit(1)' > $SITE/sitecustomize.py",
        options=VERSIONS,
        cause="versions.tensorflow-installed",
    ),
    Plant(
        name="metadata-of-0-bytes",
        breaks="rm $SITE/h5py-*/METADATA; touch $(ls -d $SITE/h5py-*.dist-info)/METADATA",
        options=VERSIONS,
        cause="versions.packages-intact",
    ),
    Plant(
        name="metadata-of-a-version-that-is-gone",
        breaks="mkdir $SITE/keras-3.9.2.dist-info; "
        "printf 'Metadata-Version: 2.1\nName: keras\nVersion: 3.9.2\n' > $SITE/keras-3.9.2.dist-info/METADATA",
        options=VERSIONS,
        cause="versions.packages-intact",
    ),
    Plant(
        name="path-file-that-puts-another-keras-first",
        breaks="mkdir lib; cp -r $SITE/keras $SITE/keras-*.dist-info lib/; "
        "echo \"import sys; sys.path.insert(0, '$PWD/lib')\" > $SITE/first.pth",
        options=VERSIONS,
        cause="versions.packages-intact",
    ),
    Plant(
        name="few-open-files",
        breaks="printf '%s\n' 'schema: kdoctor/checklist/v1' 'name: job' 'version: 1' 'owner: me' 'extends: cpu-smoke' "
        "'checks: [{id: host.open-files, severity: error}]' > job.yaml",
        empty=True,
        profile="ulimit -Sn 256",
        options="--checklist job.yaml --no-smoke --select host.open-files",
        cause="host.open-files",
    ),
    Plant(
        name="small-shared-memory",
        empty=True,
        profile="mount -t tmpfs -o size=64m tmpfs /dev/shm; mount --bind /dev/shm $KDOCTOR_ROOT/dev/shm",
        options="--no-smoke --select host.shared-memory --fail-on warning",
        cause="host.shared-memory",
        machine="h100-nvswitch",
        private_mounts=True,
    ),
    Plant(
        name="visible-devices-with-a-typing-error",
        empty=True,
        profile="export CUDA_VISIBLE_DEVICES=0,1,9",
        options="--no-smoke --select environment.visible-devices --select gpu.count-expected",
        cause="environment.visible-devices",
        machine="h100-nvswitch",
    ),
    Plant(
        name="lost-gpu",
        empty=True,
        options="--no-smoke --select gpu --select environment",
        cause="gpu.responding",
        machine="one-gpu-lost",
    ),
    Plant(
        name="no-gpu-visible",
        empty=True,
        profile="export CUDA_VISIBLE_DEVICES=-1",
        options="--no-smoke --select environment.visible-devices --select gpu.count-expected",
        cause="environment.visible-devices",
        machine="h100-nvswitch",
    ),
)


@pytest.fixture
def session(plant: Plant, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    if plant.missing():
        pytest.skip(f"not installed: {', '.join(plant.missing())}")
    environment = copy(request.getfixturevalue("bare" if plant.empty else "healthy"), tmp_path / "job")
    session = Session(tmp_path, plant, environment)
    session.plant()
    yield session
    shutil.rmtree(environment)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_first_fix_makes_the_next_run_pass(plant: Plant, session: Session) -> None:
    failing = session.check()
    assert failing.exit_code == 1, failing.screen
    assert failing.causes[0] == plant.cause, failing.screen
    assert failing.fix, failing.screen

    passing = session.paste(failing)
    assert passing.exit_code == 0, f"{failing.screen}\n{passing.screen}"
