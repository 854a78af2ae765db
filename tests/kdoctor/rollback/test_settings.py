from __future__ import annotations

import json
from pathlib import Path

from helpers.facts import environment, keras
from helpers.locks import lock, node_facts
from helpers.rollbacks import planned, shell
from kdoctor.lock.facts import recorded_facts
from kdoctor.rollback.installers import read_installation
from kdoctor.rollback.plan import plan_rollback


def test_variables_are_set_and_unset_as_recorded() -> None:
    (step,) = planned(environment(NCCL_P2P_DISABLE="1"), to=lock(environment(NCCL_DEBUG="WARN it's"))).steps
    assert step.commands == ("export NCCL_DEBUG='WARN it'\"'\"'s'", "unset NCCL_P2P_DISABLE")
    assert step.in_shell


def test_withheld_value_is_restored_manually() -> None:
    plan = planned(environment(), to=lock(environment(LD_LIBRARY_PATH="/opt/cuda/lib64")))
    assert plan.steps == ()
    (text,) = plan.by_hand
    assert text.startswith("LD_LIBRARY_PATH ")
    assert "--with-identifiers" in text


def test_backend_is_restored_by_its_variable() -> None:
    (step,) = planned(keras(backend="jax", backend_from="keras.json")).steps
    assert step.commands == ("export KERAS_BACKEND=tensorflow",)


def test_settings_of_keras_json_are_restored(tmp_path: Path) -> None:
    now = keras(settings={"floatx": "float16", "epsilon": "1e-05", "image_data_format": "channels_last"})
    (step,) = planned(now).steps
    (tmp_path / "keras.json").write_text('{"floatx": "float16", "epsilon": 1e-05, "backend": "tensorflow"}')
    home = f"export KERAS_HOME={tmp_path}; "
    assert shell(home + step.verify[0]).returncode == 1
    assert shell(home + step.commands[0]).returncode == 0
    assert shell(home + step.verify[0]).returncode == 0
    assert json.loads((tmp_path / "keras.json").read_text()) == {
        "floatx": "float32", "epsilon": 1e-07, "backend": "tensorflow"
    }  # fmt: skip


def test_variables_of_one_job_are_not_restored() -> None:
    before = lock(environment())
    facts = node_facts(environment(SLURM_JOB_ID="7", VIRTUAL_ENV="/x", NCCL_DEBUG="INFO"))
    plan = plan_rollback(
        before, recorded_facts(facts, identifiers=True), read_installation(facts), "job.lock.yaml", "job.yaml"
    )
    assert [command for step in plan.steps for command in step.commands] == ["unset NCCL_DEBUG"]
