"""Releases of JAX with their CUDA plugins."""

from dataclasses import replace

from kdoctor.matrix.compatibility import compatible
from kdoctor.matrix.gpus import find_gpu
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.verdict import Machine
from kdoctor.matrix.ways import way_out

MATRIX = load_matrix(environ={}).of("jax")


def machine(driver: str, gpu: str) -> Machine:
    return Machine(driver=driver, gpus=(find_gpu(MATRIX, gpu),), python="3.12")


def test_old_driver_needs_the_one_of_the_older_plugin() -> None:
    given = machine("470.256.02", "A100")
    way = way_out(MATRIX, given, compatible(MATRIX, given))
    assert way is not None
    assert (way.driver, way.verdict.release.extra) == ("525.60.13", "cuda12")
    running = machine("535.161.08", "H100")
    assert way_out(MATRIX, running, compatible(MATRIX, running)) is None


def outcomes(given: Machine) -> set[str]:
    return {verdict.outcome for verdict in compatible(MATRIX, given)}


def test_wheels_for_arm_run_on_servers_and_not_on_jetsons_without_code() -> None:
    given = machine("580.95.05", "GH200")
    assert outcomes(replace(given, platform="linux-aarch64")) == {"runs"}
    assert outcomes(replace(given, platform="linux-x86_64")) == {"does-not-run"}
    # jax-ml/jax#40487: jax[cuda12] 0.11.1 has no code that a Jetson Orin runs.
    assert outcomes(replace(machine("580.95.05", "Jetson Orin"), platform="linux-aarch64")) == {"does-not-run"}
    thor = replace(machine("580.95.05", "Jetson Thor"), platform="linux-aarch64")
    # One CUDA 13 for all Arm machines but Orin, and the cuDNN of its aarch64 wheel has code for 11.0.
    running = {verdict.release.extra for verdict in compatible(MATRIX, thor) if verdict.outcome == "runs"}
    assert (running, outcomes(thor)) == ({"cuda13"}, {"does-not-run", "runs"})


def test_known_failures_of_tensorflow_do_not_concern_jax() -> None:
    for verdict in compatible(MATRIX, machine("580.95.05", "B200")):
        assert not {reason.failure for reason in verdict.reasons} & {"blackwell_invalid_ptx", "blackwell_xla_ptx85"}
