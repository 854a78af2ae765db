"""Files of packages that are missing, or that other files hide."""

from dataclasses import replace
from typing import Any

from helpers.facts import PYTHON, environment, package, packages, target, tensorflow
from helpers.rows import fails, passes, table, unknown
from kdoctor.facts import FactGroup, PackageFault, Packages, Target, TensorFlowBuild
from kdoctor.model import Severity


def found(*faults: PackageFault, files: int | None = 3567) -> FactGroup:
    return replace(packages(), files=files, faults=faults)


def fault(package: str, version: str, file: str, **changes: Any) -> PackageFault:
    return PackageFault(package=package, version=version, files=1924, file=file, **changes)


BROKEN = fault("tensorflow", "2.21.0", "tensorflow/libtensorflow_framework.so.2", missing=1)
HIDDEN = fault("keras", "3.15.1", "/opt/mine/keras/__init__.py", shadowed=True)
OVERWRITTEN = fault("keras", "3.15.1", "keras/__init__.py", changed=1900, overwritten_by="keras-nightly")
NEXT_TO_SCRIPT = fault("python", "3.12.0", "/home/ada/job/random.py", shadowed=True)

test_packages_intact = table(
    "versions.packages-intact",
    Severity.ERROR,
    passes(
        found(),
        of=["tensorflow 2.21.0"],
        said={"tensorflow 2.21.0": "3567 modules and libraries of it, Keras and their requirements are in place"},
    ),
    fails(
        found(BROKEN),
        "libtensorflow_framework.so.2 is missing (1 of 1924 files of tensorflow 2.21.0)",
        of=["tensorflow 2.21.0"],
        commands=(f"{PYTHON} -m pip install --force-reinstall --no-deps tensorflow==2.21.0",),
    ),
    fails(
        replace(packages(package("keras", "3.15.1"), package("keras", "2.12.0")), files=9),
        "the metadata of keras 3.15.1 and 2.12.0",
        of=["import keras"],
        commands=(
            f"for copy in 1 2; do {PYTHON} -m pip uninstall -y keras; done",
            f"{PYTHON} -m pip install keras==3.15.1",
        ),
    ),
    passes(
        replace(packages(package("keras", "3.15.1"), replace(package("keras", "2.12.0"), location="/usr/lib")), files=9)
    ),
    fails(
        found(HIDDEN),
        environment(PYTHONPATH="/opt/mine:/opt/other"),
        of=["import keras"],
        commands=("export PYTHONPATH=/opt/other",),
        rollback=("export PYTHONPATH=/opt/mine:/opt/other",),
    ),
    fails(
        found(NEXT_TO_SCRIPT),
        "hides the standard library",
        of=["import random"],
        commands=("mv /home/ada/job/random.py /home/ada/job/random.py.unused",),
    ),
    *(
        fails(found(fault("wrapt", "2.0", f"/home/ada/job/wrapt{form}", shadowed=True)), of=["import wrapt"])
        for form in (".pyc", ".cpython-312-x86_64-linux-gnu.so")
    ),
    fails(
        found(fault("keras", "3.15.1", "/opt/job/site/a.pth", shadowed=True)),
        "puts a folder with another one before keras",
        of=["import keras"],
        commands=("mv /opt/job/site/a.pth /opt/job/site/a.pth.unused",),
        rollback=("mv /opt/job/site/a.pth.unused /opt/job/site/a.pth",),
    ),
    fails(
        found(fault("keras", "3.9.2", "/opt/job/site/keras-3.9.2.dist-info", shadowed=True)),
        "is left of a version that is gone",
        of=["import keras"],
        commands=("mv /opt/job/site/keras-3.9.2.dist-info /opt/job/site/keras-3.9.2.dist-info.unused",),
    ),
    fails(found(HIDDEN, BROKEN), of=2),
    fails(
        found(OVERWRITTEN),
        "1900 of 1924 files of keras 3.15.1",
        "are those of keras-nightly",
        of=["keras and keras-nightly"],
        commands=(f"{PYTHON} -m pip uninstall -y keras keras-nightly", f"{PYTHON} -m pip install keras==3.15.1"),
    ),
    unknown(found(files=None)),
    unknown(found(files=0)),
    *(unknown(group) for group in (Packages, Target, TensorFlowBuild)),
    given=(found(), tensorflow(), target(), environment()),
)
