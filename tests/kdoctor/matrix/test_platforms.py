"""Platforms other than Linux on x86-64, libraries of the system, and ways to run a newer release."""

from helpers.cases import cases
from kdoctor.matrix.compatibility import compatible
from kdoctor.matrix.gpus import find_gpu
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.verdict import Machine
from kdoctor.matrix.ways import way_out

MATRIX = load_matrix(environ={})


def machine(driver: str, gpu: str) -> Machine:
    return Machine(driver=driver, gpus=(find_gpu(MATRIX, gpu),), python="3.11")


def test_installed_cuda_excludes_builds_of_another_major() -> None:
    given = Machine(driver="580.95.05", gpus=(find_gpu(MATRIX, "A100"),), python="3.11", cuda="12.5", cudnn="9.3")
    verdicts = {verdict.release.version: verdict for verdict in compatible(MATRIX, given)}
    assert verdicts["2.21.0"].outcome == "runs"
    assert verdicts["2.21.0"].command == "python -m pip install tensorflow==2.21.0"
    assert verdicts["2.21.0"].export is None
    assert {reason.rule for reason in verdicts["2.17.1"].against} == {"libraries"}  # built with cuDNN 8.9
    assert {reason.rule for reason in verdicts["2.13.1"].against} == {"libraries"}  # built with CUDA 11.8


@cases(  # NVIDIA's table of forward compatibility
    ("535.161.08", "H100", "555.42.02", "cuda-compat-12-5"),
    ("535.161.08", "H20", "555.42.02", "cuda-compat-12-5"),
    ("550.54.15", "H100", "555.42.02", None),  # the branch has ended and is not in the table
    ("470.256.02", "H100", "555.42.02", None),
    ("470.256.02", "A100", "525.60.13", None),
    ("470.256.02", "RTX 3090", "525.60.13", None),
    ("565.57.01", "B200", "570.26", None),  # a package does not make the driver support a newer GPU
)
def test_old_driver_has_a_way_out(driver: str, gpu: str, needed: str, package: str | None) -> None:
    given = machine(driver, gpu)
    found = way_out(MATRIX, given, compatible(MATRIX, given))
    assert found is not None
    assert (found.verdict.release.version, found.driver, found.package) == ("2.21.0", needed, package)
