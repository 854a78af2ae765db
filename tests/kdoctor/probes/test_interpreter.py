"""The interpreter probe in real environments without pip and TensorFlow. The tests write the packages."""

import os
import shutil
import stat
import sys
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from helpers.cases import cases
from kdoctor.facts import FactGroup, Facts, KerasChoice, Packages, Target, TensorFlowBuild, Unavailable
from kdoctor.probes import interpreter
from kdoctor.probes.probe import Context
from kdoctor.probes.process.child import Children

pytestmark = pytest.mark.skipif(os.name != "posix", reason="environments are laid out as on POSIX")

G = TypeVar("G", bound=FactGroup)
BUILD_INFO = """\
import collections
build_info = collections.OrderedDict([('cuda_compute_capabilities', ['sm_80', 'compute_90']),
    ('cuda_version', '12.5.1'), ('cudnn_version', '9'), ('is_cuda_build', True)])
raise SystemExit("this file is read, not run")
"""
HEADER = """\
#define TF_CUDA_VERSION "12.8.0"
#define TF_CUDNN_VERSION "9"
#define TF_CUDA_COMPUTE_CAPABILITIES 60, 70, 90
"""


class Job:
    """An environment to which a test adds packages."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        self.folder = folder
        self.python = folder / "bin/python"
        (self.site,) = folder.glob("lib/python*/site-packages")
        self.environ: dict[str, str] = {"HOME": str(folder / "home"), "PATH": os.defpath}
        (folder / "home").mkdir()

    def install(self, name: str, version: str | None, *headers: str, folder: str | None = None) -> Path:
        info = self.site / (folder or f"{name}-{version}.dist-info")
        info.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {name}", *([f"Version: {version}"] if version else []), *headers]
        (info / "METADATA").write_text("\n".join([*lines, "", "Requires-Dist: not-a-header", ""]))
        return info

    def starts_with(self, code: str) -> Path:
        """Run code when the interpreter starts, before the same file of Debian's Python is found."""
        (self.site / "first.pth").write_text(f"import sys; sys.path.insert(0, {str(self.site)!r})\n")
        file = self.site / "sitecustomize.py"
        file.write_text(code)
        return file

    def tensorflow(self, version: str, build_info: str | None = BUILD_INFO, header: str | None = None) -> None:
        self.install("tensorflow", version)
        package = self.site / "tensorflow"
        package.mkdir()
        (package / "__init__.py").write_text("raise SystemExit('TensorFlow was imported')")
        for path, text in (
            (package / "python/platform/build_info.py", build_info),
            (package / "include/third_party/gpus/cuda/cuda_config.h", header),
        ):
            if text is not None:
                path.parent.mkdir(parents=True)
                path.write_text(text)

    def collect(self) -> Facts:
        context = Context(
            python=str(self.python), chosen_by="--python", environ=self.environ, children=Children(), root=Path("/")
        )
        return interpreter.collect(context)

    def read(self, kind: type[G]) -> G:
        facts = self.collect()[kind]
        assert isinstance(facts, kind), facts
        return facts


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path / "job")


def test_target_describes_the_interpreter(job: Job) -> None:
    facts = job.read(Target)
    assert (facts.executable, facts.chosen_by) == (str(job.python), "--python")
    assert facts.version == ".".join(map(str, sys.version_info[:3]))
    assert (facts.implementation, facts.environment, facts.prefix) == (sys.implementation.name, "venv", str(job.folder))
    assert facts.base_prefix == sys.base_prefix


def test_environment_without_metadata(job: Job) -> None:
    """The probe adds no packages to the path of the target and no files to its folders."""
    before = sorted(job.folder.rglob("*"))
    collected = job.collect()
    assert sorted(job.folder.rglob("*")) == before
    assert collected[Packages] == Packages(installed=(), has_pip=False, has_uv=bool(shutil.which("uv")), files=0)
    assert collected[TensorFlowBuild] == TensorFlowBuild(installed=False)
    keras = collected[KerasChoice]
    assert isinstance(keras, KerasChoice)
    assert (keras.package, keras.version) == ("keras", None)


def test_packages_match_their_metadata(job: Job) -> None:
    info = job.install(
        "Foo.Bar_baz", "1.0", "Requires-Python: >=3.9", "Requires-Dist: numpy (<2)", 'Requires-Dist: x; extra == "y"'
    )
    (info / "INSTALLER").write_text("uv\n")
    (job.site / "pip").mkdir()
    (job.site / "pip/__init__.py").touch()
    packages = job.read(Packages)
    (package,) = packages.installed
    assert (package.name, package.version, package.location) == ("foo-bar-baz", "1.0", str(job.site))
    assert package.requires == ("numpy (<2)", 'x; extra == "y"')
    assert (package.requires_python, package.installer) == (">=3.9", "uv")
    assert packages.has_pip


def test_broken_packages_do_not_hide_others(job: Job) -> None:
    job.install("good", "1.0")
    (job.site / "empty-2.0.dist-info").mkdir()
    (job.install("binary", "3.0") / "METADATA").write_bytes(b"\xff\xfe\x00")
    job.install("versionless", None, folder="versionless-4.0.dist-info")
    (job.site / "file-5.0.dist-info").write_text("a file")
    found = {package.name: package.version for package in job.read(Packages).installed}
    assert found == {"good": "1.0", "empty": None, "binary": None, "versionless": None, "file": None}


def test_pip_leftovers_are_not_packages(job: Job) -> None:
    job.install("numpy", "2.0", folder="~umpy-2.0.dist-info")
    job.install("numpy", "1.26.4")
    assert [package.version for package in job.read(Packages).installed] == ["1.26.4"]


def test_duplicate_names_keep_path_order(job: Job, tmp_path: Path) -> None:
    job.install("numpy", "1.26.4")
    early = tmp_path / "early"
    early.mkdir()
    job.install("numpy", "2.1.0").rename(early / "numpy-2.1.0.dist-info")
    job.environ["PYTHONPATH"] = str(early)
    packages = job.read(Packages)
    assert [package.version for package in packages.installed] == ["2.1.0", "1.26.4"]
    assert packages.version("numpy") == "2.1.0"


def test_eggs_have_requirements(job: Job) -> None:
    egg = job.site / "old-1.0.egg-info"
    egg.mkdir()
    (egg / "PKG-INFO").write_text("Metadata-Version: 1.0\nName: old\nVersion: 1.0\n")
    (egg / "requires.txt").write_text("six>=1.0\n")
    (package,) = job.read(Packages).installed
    assert (package.version, package.requires) == ("1.0", ("six>=1.0",))


def test_build_is_read_without_importing(job: Job) -> None:
    job.tensorflow("2.21.0")
    assert job.read(TensorFlowBuild) == TensorFlowBuild(
        installed=True,
        distribution="tensorflow",
        version="2.21.0",
        location=str(job.site / "tensorflow"),
        cuda_build=True,
        cuda_version="12.5.1",
        cudnn_version="9",
        compute_capabilities=("sm_80", "compute_90"),
    )


def test_cpu_build_has_no_cuda_version(job: Job) -> None:
    job.tensorflow("2.21.0", "build_info = {'is_cuda_build': False}", '#define TF_CUDA_VERSION "12.5.1"\n')
    facts = job.read(TensorFlowBuild)
    assert (facts.cuda_build, facts.cuda_version, facts.compute_capabilities, facts.unreadable) == (
        False,
        None,
        (),
        None,
    )


@pytest.mark.parametrize("build_info", ["build_info = {'is_cuda_build': True}", "build_info = {}", None])
def test_nightly_build_is_read_from_header(job: Job, build_info: str | None) -> None:
    job.tensorflow("2.23.0.dev20261101", build_info, HEADER)
    facts = job.read(TensorFlowBuild)
    assert (facts.cuda_build, facts.cuda_version, facts.cudnn_version) == (True, "12.8.0", "9")
    assert facts.compute_capabilities == ("60", "70", "90")
    assert facts.unreadable is None


@pytest.mark.parametrize("build_info", ["build_info = {", "build_info = dict(open('/etc/passwd'))", "x = 1", None])
def test_build_without_information_is_unreadable(job: Job, build_info: str | None) -> None:
    job.tensorflow("2.21.0", build_info)
    facts = job.read(TensorFlowBuild)
    assert (facts.installed, facts.version, facts.cuda_build, facts.cuda_version) == (True, "2.21.0", None, None)
    assert facts.unreadable
    assert facts.unreadable.startswith("build_info.py: ")


def test_remains_of_tensorflow_are_not_tensorflow(job: Job) -> None:
    (job.site / "tensorflow/lite").mkdir(parents=True)
    facts = job.read(TensorFlowBuild)
    assert (facts.installed, facts.location) == (False, str(job.site / "tensorflow"))
    assert "__init__.py" in (facts.unreadable or "")


def test_file_named_tensorflow_shadows_the_package(job: Job, tmp_path: Path) -> None:
    job.tensorflow("2.21.0")
    (tmp_path / "tensorflow.py").touch()
    job.environ["PYTHONPATH"] = str(tmp_path)
    facts = job.read(TensorFlowBuild)
    assert (facts.installed, facts.location) == (False, str(tmp_path / "tensorflow.py"))


def test_distribution_next_to_the_package_is_chosen(job: Job, tmp_path: Path) -> None:
    job.tensorflow("2.21.0")
    (job.site / "tensorflow-2.21.0.dist-info").rename(tmp_path / "gone")
    job.install("tensorflow_cpu", "2.20.0")
    facts = job.read(TensorFlowBuild)
    assert (facts.distribution, facts.version) == ("tensorflow-cpu", "2.20.0")


@cases(
    ("2.21.0", {}, "keras", "3.15.1", False),
    ("2.21.0", {"TF_USE_LEGACY_KERAS": "1"}, "tf-keras", "2.21.0", True),
    ("2.21.0", {"TF_USE_LEGACY_KERAS": "True"}, "tf-keras", "2.21.0", True),
    ("2.21.0", {"TF_USE_LEGACY_KERAS": "0"}, "keras", "3.15.1", False),
    ("2.21.0", {"TF_USE_LEGACY_KERAS": "yes"}, "keras", "3.15.1", False),
    ("2.5.3", {}, "tensorflow", "2.5.3", False),
)
def test_keras_package_is_chosen_like_tensorflow(  # noqa: PLR0917 - one table
    job: Job,
    tensorflow: str,
    environ: dict[str, str],
    package: str,
    version: str,
    legacy: bool,  # noqa: FBT001 - a column of the table
) -> None:
    job.tensorflow(tensorflow)
    job.install("keras", "3.15.1")
    job.install("tf_keras", "2.21.0")
    job.environ |= environ
    facts = job.read(KerasChoice)
    assert (facts.package, facts.version, facts.legacy) == (package, version, legacy)


def test_missing_legacy_keras_has_no_version(job: Job) -> None:
    job.tensorflow("2.21.0")
    job.environ["TF_USE_LEGACY_KERAS"] = "1"
    facts = job.read(KerasChoice)
    assert (facts.package, facts.version) == ("tf-keras", None)


def test_keras_backend_is_read_from_variable_and_file(job: Job) -> None:
    assert job.read(KerasChoice).backend_from == "default"
    home = job.folder / "home/.keras"
    home.mkdir()
    (home / "keras.json").write_text('{"backend": "jax"}')
    facts = job.read(KerasChoice)
    assert (facts.backend, facts.backend_from) == ("jax", "keras.json")
    job.environ["KERAS_HOME"] = str(job.folder)
    (job.folder / "keras.json").write_text("{broken")
    facts = job.read(KerasChoice)
    assert (facts.backend, facts.backend_from) == ("tensorflow", "default")
    job.environ["KERAS_BACKEND"] = "torch"
    facts = job.read(KerasChoice)
    assert (facts.backend, facts.backend_from) == ("torch", "KERAS_BACKEND")


def test_conda_is_detected_by_its_records(job: Job) -> None:
    (job.folder / "conda-meta").mkdir()
    for name in ("ml_dtypes-0.5.3-py311_0.json", "libstdcxx-ng-15.1.0-h8f9b012_2.json", "history", "odd.json"):
        (job.folder / "conda-meta" / name).touch()
    collected = job.collect()
    target, packages = collected[Target], collected[Packages]
    assert isinstance(target, Target)
    assert isinstance(packages, Packages)
    assert target.environment == "conda"
    assert packages.conda == ("libstdcxx-ng=15.1.0=h8f9b012_2", "ml_dtypes=0.5.3=py311_0")


def test_keras_json_settings(job: Job) -> None:
    assert job.read(KerasChoice).settings == {
        "floatx": "float32",
        "epsilon": "1e-07",
        "image_data_format": "channels_last",
    }
    job.environ["KERAS_HOME"] = str(job.folder)
    (job.folder / "keras.json").write_text('{"floatx": "float64", "epsilon": 1e-05, "backend": "tensorflow"}')
    assert job.read(KerasChoice).settings == {
        "floatx": "float64",
        "epsilon": "1e-05",
        "image_data_format": "channels_last",
    }


def test_interpreter_output_is_ignored(job: Job) -> None:
    job.starts_with("import sys\nprint('hello')\nprint('trouble', file=sys.stderr)")
    assert job.read(Packages).installed == ()


def test_interpreter_that_dies_is_unavailable(job: Job) -> None:
    job.starts_with("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
    for facts in job.collect().values():
        assert isinstance(facts, Unavailable)
        assert "SIGSEGV" in facts.unavailable


@pytest.mark.parametrize("code", ["raise SystemExit('no licence')", "import os; os._exit(7)", "import absent"])
def test_interpreter_that_ends_at_its_start_is_named_with_the_file(job: Job, code: str) -> None:
    file = job.starts_with(code)
    only, *others = job.collect().values()
    if code == "import absent":  # Python prints the error and goes on
        assert not any(isinstance(group, Unavailable) for group in (only, *others))
        return
    assert all(group == only for group in others)
    assert isinstance(only, Unavailable)
    assert only.interpreter == str(job.python)
    assert only.ended_by == (str(file) if "licence" in code else "")
    assert ("no licence" if "licence" in code else "status 7") in only.unavailable


def test_hang_in_one_group_keeps_earlier_groups(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "DEADLINE_S", 3.0)
    finder = (
        "import sys, time\nclass F:\n  def find_spec(self, name, *_):\n    if name == 'tensorflow': time.sleep(60)\n"
    )
    job.starts_with(f"{finder}sys.meta_path.insert(0, F())")
    collected = job.collect()
    assert isinstance(collected[Packages], Packages)
    facts = collected[TensorFlowBuild]
    assert isinstance(facts, Unavailable)
    assert "did not finish within" in facts.unavailable


def test_error_in_one_group_does_not_affect_others(job: Job) -> None:
    finder = "import sys\nclass F:\n  def find_spec(self, name, *_):\n"
    finder += "    if name == 'tensorflow': raise OSError('stale handle')\n"
    job.starts_with(f"{finder}sys.meta_path.insert(0, F())")
    collected = job.collect()
    failed = collected[TensorFlowBuild]
    assert isinstance(failed, Unavailable)
    assert "OSError: stale handle" in failed.unavailable
    assert isinstance(collected[KerasChoice], KerasChoice)


def test_program_other_than_python_is_unavailable(job: Job, tmp_path: Path) -> None:
    job.python = tmp_path / "python"
    job.python.write_text("#!/bin/sh\necho hello\n")
    job.python.chmod(job.python.stat().st_mode | stat.S_IXUSR)
    facts = job.collect()[Target]
    assert isinstance(facts, Unavailable)
    assert "status 0" in facts.unavailable


def test_eighty_packages_are_fast(job: Job, quickest: Callable[[Callable[[], object]], float]) -> None:
    for number in range(80):
        job.install(f"package-{number}", "1.0", *(f"Requires-Dist: dependency-{entry}" for entry in range(20)))
    assert len(job.read(Packages).installed) == 80
    empty_start = quickest(
        lambda: Children().run([str(job.python), "-c", "import importlib.metadata"], env=job.environ, deadline_s=20)
    )
    # A ratio within one run does not depend on the load of the machine. Most of it is the start of the interpreter.
    assert quickest(job.collect) < 4 * empty_start


@pytest.fixture
def quickest() -> Callable[[Callable[[], object]], float]:
    def measure(work: Callable[[], object]) -> float:
        times: list[float] = []
        for _ in range(3):
            started = time.perf_counter()
            work()
            times.append(time.perf_counter() - started)
        return min(times)

    return measure


def test_ownership_is_recorded(job: Job) -> None:
    settings: dict[str, Any] = {
        "python": str(job.python),
        "chosen_by": "example",
        "environ": job.environ,
        "children": Children(),
    }
    assert job.read(Target).stand_in is False
    collected = interpreter.collect(Context(**settings, stand_in=True, root=Path("/")))
    target = collected[Target]
    assert isinstance(target, Target)
    assert (target.chosen_by, target.stand_in) == ("example", True)
