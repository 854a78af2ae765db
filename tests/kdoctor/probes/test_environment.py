from pathlib import Path

from helpers.machine import context
from kdoctor.facts import Environment
from kdoctor.probes.environment import allowed, collect


def test_only_the_allow_list_is_read() -> None:
    environ = {
        "CUDA_VISIBLE_DEVICES": "0,1",
        "HOME": "/home/x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "XLA_FLAGS": "",
        "SHELL": "sh",
    }
    assert allowed(environ) == {"CUDA_VISIBLE_DEVICES": "0,1", "XLA_FLAGS": ""}


def test_every_variable_family_is_read() -> None:
    names = [
        "CUDA_DEVICE_ORDER",
        "NVIDIA_VISIBLE_DEVICES",
        "NCCL_DEBUG",
        "TF_CONFIG",
        "TF_USE_LEGACY_KERAS",
        "XLA_FLAGS",
        "KERAS_BACKEND",
        "LD_LIBRARY_PATH",
        "PYTHONPATH",
        "OMP_NUM_THREADS",
        "SLURM_JOB_ID",
    ]
    assert set(allowed(dict.fromkeys(names, "1"))) == set(names)


def test_ordinary_values_are_unchanged() -> None:
    environ = {
        "CUDA_VISIBLE_DEVICES": "GPU-3f2d0c1e-1111-2222-3333-444455556666,1",
        "NCCL_IB_PKEY": "1",
        "NVIDIA_REQUIRE_CUDA": "cuda>=12.5 brand=tesla,driver>=470,driver<471",
        "TF_CONFIG": '{"cluster": {"worker": ["a:1", "b:2"]},   "task": {"type": "worker", "index": 0}}',
        "XLA_FLAGS": "--xla_gpu_cuda_data_dir=/usr/local/cuda",
    }
    assert allowed(environ) == environ


def test_secrets_are_masked() -> None:
    environ = {
        "SLURM_JWT": "abc",
        "NVIDIA_API_KEY": "abc",
        "TF_CONFIG": '{"task": {"index": 0}, "password": "hunter2", "hosts": ["https://u:p@h/x"]}',
        "PYTHONPATH": "/a:https://user:token@host/simple",
        "TF_VAR_database": "hunter2",
    }
    values = allowed(environ)
    assert values["SLURM_JWT"] == values["NVIDIA_API_KEY"] == values["TF_VAR_database"] == "***"
    assert values["TF_CONFIG"] == '{"task": {"index": 0}, "password": "***", "hosts": ["https://***@h/x"]}'
    assert values["PYTHONPATH"] == "/a:https://***@host/simple"


def test_non_utf8_values_can_be_written() -> None:
    assert allowed({"TF_X": "a\udcffb"}) == {"TF_X": "a?b"}


def test_environment_of_the_job_is_read(tmp_path: Path) -> None:
    facts = collect(context(tmp_path, {"TF_CPP_MIN_LOG_LEVEL": "3"}))[Environment]
    assert isinstance(facts, Environment)
    assert facts.variables == {"TF_CPP_MIN_LOG_LEVEL": "3"}
