import json
from pathlib import Path

from helpers.cases import cases
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
    assert step.restores == ("keras.backend: jax -> tensorflow",)


def test_settings_of_keras_json_are_restored(tmp_path: Path) -> None:
    now = keras(settings={"floatx": "float16", "epsilon": "1e-05"})  # the format was not read
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
    facts = node_facts(environment(CONDA_PREFIX="/x", NCCL_DEBUG="INFO", SLURM_JOB_ID="7", VIRTUAL_ENV="/x"))
    plan = plan_rollback(
        before, recorded_facts(facts, identifiers=True), read_installation(facts), "job.lock.yaml", "job.yaml"
    )
    assert [command for step in plan.steps for command in step.commands] == ["unset NCCL_DEBUG"]
    withheld = planned(environment(CONDA_PREFIX="/y", NCCL_DEBUG="INFO"), to=before)
    assert withheld.steps[0].commands == ("unset NCCL_DEBUG",)


def test_withheld_value_is_named_with_the_value_of_now() -> None:
    (text,) = planned(environment(NCCL_COMM_ID="7"), to=lock(environment(NCCL_COMM_ID="10.0.0.7:1234"))).by_hand
    assert "is now 7;" in text
    (text,) = planned(environment(), to=lock(environment(NCCL_COMM_ID="10.0.0.7:1234"))).by_hand
    assert "is now not set;" in text


@cases(({"TF_A.B": "1"}, {}, "was 1;"), ({}, {"TF_A.B": "2"}, "was not set;"))
def test_variable_that_a_shell_cannot_set_is_restored_manually(
    before: dict[str, str], now: dict[str, str], named: str
) -> None:
    plan = planned(environment(**now), to=lock(environment(**before)))
    assert plan.steps == ()
    (text,) = plan.by_hand
    assert text.startswith("TF_A.B ")
    assert named in text


@cases((True, "export TF_USE_LEGACY_KERAS=1"), (False, "unset TF_USE_LEGACY_KERAS"))
def test_legacy_keras_is_restored_by_its_variable(recorded: bool, command: str) -> None:  # noqa: FBT001
    (step,) = planned(keras(legacy=not recorded), to=lock(keras(legacy=recorded))).steps
    assert step.commands == (command,)
    assert [text.partition(":")[0] for text in step.restores] == ["keras.legacy"]


def test_variable_that_drifted_itself_is_restored_once() -> None:
    """The recorded variable counts, also if the choice of Keras followed from it."""
    before = lock(keras(backend="jax", legacy=True), environment(KERAS_BACKEND="jax", TF_USE_LEGACY_KERAS="true"))
    (step,) = planned(keras(), environment(), to=before).steps
    assert step.commands == ("export KERAS_BACKEND=jax", "export TF_USE_LEGACY_KERAS=true")
    assert [text.partition(":")[0] for text in step.restores] == [
        "environment.KERAS_BACKEND", "environment.TF_USE_LEGACY_KERAS"
    ]  # fmt: skip
