from typing import Any

from helpers.facts import environment, gpu, gpus, host, keras, lost_gpu, pci
from helpers.rows import Row, fails, passes, skips, table, unknown
from kdoctor.facts import Environment, Gpus
from kdoctor.model import Assumptions, GpuAssumption, Severity


def wanted(**variables: str) -> Assumptions:
    return Assumptions(environment=variables)


def growth(status: Any, value: str | None, expected: str) -> Row:
    found = environment() if value is None else environment(TF_FORCE_GPU_ALLOW_GROWTH=value)
    row: Row = status(found, wanted(TF_FORCE_GPU_ALLOW_GROWTH=expected))
    return row


MASKED = environment(NCCL_ENV_PLUGIN="https://***@plugins.example")

test_variables = table(
    "environment.variables-expected",
    Severity.ERROR,
    growth(passes, "true", "true"),
    growth(fails, "True", "true"),
    growth(fails, "", "true"),
    growth(fails, None, "true"),
    growth(passes, None, "unset"),
    growth(fails, "", "unset"),
    growth(passes, "", ""),
    passes(
        environment(NCCL_DEBUG="INFO"),
        wanted(NCCL_DEBUG="INFO", NCCL_P2P_DISABLE="unset"),
        said={"NCCL_DEBUG": "'INFO'", "NCCL_P2P_DISABLE": "unset"},
    ),
    fails(
        environment(),
        wanted(NCCL_DEBUG="INFO"),
        "fail NCCL_DEBUG: unset",
        expected="'INFO'",
        commands=("export NCCL_DEBUG=INFO",),
        rollback=("unset NCCL_DEBUG",),
    ),
    unknown(environment(), wanted(MY_OWN="unset")),
    unknown(environment(), wanted(SOME_NAME="1"), of=1),
    unknown(Environment(variables={}), wanted(NCCL_DEBUG="unset"), of=1),
    unknown(MASKED, wanted(NCCL_ENV_PLUGIN="https://ada@plugins.example")),
    fails(MASKED, wanted(NCCL_ENV_PLUGIN="unset"), commands=("unset NCCL_ENV_PLUGIN",), rollback=()),
    skips(environment()),
    unknown(Environment, wanted(NCCL_DEBUG="INFO")),
    given=(keras(),),
)


def level(status: Any, value: str | None, expected: str, *texts: str, **stated: Any) -> Row:
    found = environment(CUDA_X="1") if value is None else environment(XLA_FLAGS=value)
    row: Row = status(found, Assumptions(flags={"xla_gpu_autotune_level": expected}), *texts, **stated)
    return row


def settings(**values: str) -> Assumptions:
    return Assumptions(flags={f"keras.{name}": value for name, value in values.items()})


test_flags = table(
    "environment.variables-expected",
    Severity.ERROR,
    level(passes, "--xla_gpu_autotune_level=4", "4", said={"xla_gpu_autotune_level": "4 (XLA_FLAGS)"}),
    level(passes, "--xla_gpu_autotune_level=2 --xla_gpu_autotune_level=4", "4"),  # the later one wins
    level(passes, "--xla_dump_to='/tmp/a b' --xla_gpu_autotune_level=4", "4"),
    level(passes, "--xla_gpu_autotune_level", "true", "true (XLA_FLAGS)"),
    level(passes, "--xla_gpu_autotune_level=True", "true", "True (XLA_FLAGS)"),
    level(passes, "--xla_gpu_autotune_level=false", "False", "false (XLA_FLAGS)"),
    level(fails, "--xla_gpu_autotune_level=false", "true"),
    level(fails, "--xla_gpu_autotune_level=abc", "ABC"),  # only true and false ignore the case
    level(fails, "--xla_gpu_autotune_level=4", "unset", commands=("unset XLA_FLAGS",)),
    level(passes, "--xla_dump_to=/tmp", "unset"),
    level(fails, "--xla_dump_to=/tmp", "4"),
    level(passes, "", "unset"),
    level(passes, None, "unset", "unset (XLA_FLAGS)"),
    level(fails, None, "4"),
    level(unknown, "flags.txt", "4", "XLA_FLAGS names a file of flags, or is not valid: 'flags.txt'."),
    level(unknown, "--xla_dump_to='/tmp", "unset"),
    level(unknown, "--xla_gpu_autotune_level=***", "true", "its value has a secret and is masked."),
    level(
        fails,
        "--xla_dump_to=/tmp --xla_gpu_autotune_level=4",
        *("2", "fail xla_gpu_autotune_level: 4.", "Expected: 2."),
        commands=("export XLA_FLAGS='--xla_dump_to=/tmp --xla_gpu_autotune_level=2'",),
        rollback=("export XLA_FLAGS='--xla_dump_to=/tmp --xla_gpu_autotune_level=4'",),
    ),
    fails(
        environment(TF_XLA_FLAGS="--tf_xla_auto_jit=2"),
        Assumptions(flags={"tf_xla_auto_jit": "unset"}),
        commands=("unset TF_XLA_FLAGS",),
    ),
    unknown(Environment(variables={}), Assumptions(flags={"xla_a": "1"}), of=1),
    passes(environment(), settings(floatx="float32", epsilon="0.0000001")),
    fails(environment(), settings(floatx="float32", epsilon="0.001")),
    fails(environment(), settings(floatx="float16"), said={"keras.floatx": "float32"}),
    unknown(environment(), settings(floatx="float32"), keras(settings={})),
    given=(keras(),),
)

VISIBLE, ORDER, CONTAINER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES"
UUIDS = [f"GPU-{index:08x}-1111-2222-3333-444444444444" for index in range(4)]
MIXED = gpus(3, gpu(0, name="A"), gpu(1, name="A"), gpu(2, name="B"))
LOST = gpus(3, gpu(0), lost_gpu(1), gpu(2))


def mask(value: str, order: str | None = None) -> Environment:
    return environment(**{VISIBLE: value}, **({ORDER: order} if order else {}))


def least(**number: Any) -> Assumptions:
    return Assumptions(gpus=GpuAssumption(**number))


def in_container(status: Any, asked: str, found: Gpus, runtime: str = "docker", *texts: str) -> Row:
    row: Row = status(environment(**{CONTAINER: asked}), found, host(container=runtime), *texts)
    return row


test_visible_devices = table(
    "environment.visible-devices",
    Severity.ERROR,
    passes(environment(), "4 GPUs", briefs=["all 4 GPUs visible"]),
    passes(environment(), gpus(1), briefs=["1 GPU visible"]),
    unknown(Environment(variables={}), "it was not recorded", of=1),
    unknown(Environment(variables={VISIBLE: "0"}, allow_list=(VISIBLE,)), f"{ORDER}: it was not recorded", of=1),
    *(
        passes(mask(value), f"{visible} of 4 GPUs")
        for value, visible in (
            ("0,1,2,3", 4),
            ("3,2", 2),
            (" 0 , 1 ", 2),
            ("0", 1),
            (UUIDS[2], 1),
            (f"{UUIDS[1]},{UUIDS[0]}", 2),
            ("GPU-00000003", 1),
            ("1gpu,2ampere", 2),
        )
    ),
    *(
        fails(mask(value), f"is invalid from {invalid!r}: ", f"{visible} of 4 GPUs visible.")
        for value, invalid, visible in (
            ("-1", "-1", 0),
            ("NoDevFiles", "NoDevFiles", 0),
            ("0,2,-1,1", "-1", 2),  # NVIDIA's example
            ("0,4,1", "4", 1),
            ("0,,1", "", 1),
            ("0,1,", "", 2),
            ("1,1", "1", 0),  # a GPU that is named twice hides all
            (f"{UUIDS[0]},{UUIDS[0]}", UUIDS[0], 0),
            ("GPU-", "GPU-", 0),  # ambiguous
            ("GPU-ffff", "GPU-ffff", 0),
            (f"{UUIDS[0]},1", "1", 1),  # an index after a UUID
            (f"0,{UUIDS[1]}", UUIDS[1], 1),
        )
    ),
    fails(mask("0,9 9"), rollback=("export CUDA_VISIBLE_DEVICES='0,9 9'",), explained_by=[""]),
    fails(
        mask("0,1,2,3,4"),
        pci(5),
        "4 of 4 GPUs visible",
        explained_by=["gpu.visible-to-driver"],
        commands=("unset CUDA_VISIBLE_DEVICES",),
    ),
    fails(mask("0,1,2,3,4"), pci(4), explained_by=[""]),
    passes(mask("0,1", "PCI_BUS_ID"), least(at_least=2), f"pass {VISIBLE}: '0,1': 2 of 4 GPUs visible."),
    fails(mask("0,1"), least(count=3)),
    passes(mask("0,1,2"), LOST),  # a lost GPU keeps its index
    unknown(mask("MIG-GPU-8932f937/1/2")),
    unknown(mask("GPU-ffff"), gpus(2, gpu(0), gpu(1, uuid=None))),
    passes(mask("0,1"), f"{ORDER}: not set; all GPUs are of one model and in bus order."),
    passes(mask("0,1,2"), MIXED, unsaid=ORDER),  # all GPUs, so the order does not matter
    passes(mask("0", "PCI_BUS_ID"), MIXED),
    fails(mask("0"), MIXED, f"{ORDER}: not set (fastest first), but "),
    fails(
        mask("0", "FASTEST_FIRST"), MIXED, f"{ORDER}: FASTEST_FIRST (fastest first), but {VISIBLE} has indices of A, B."
    ),
    unknown(mask("0"), gpus(2, gpu(0), gpu(1, name=None))),
    in_container(passes, "all", gpus(2), "docker", f"pass {CONTAINER}: 'all'; the container has 2 GPUs."),
    in_container(passes, "GPU-a", gpus(2)),
    in_container(passes, "", gpus(1), "docker", "''; the container has 1 GPU."),
    in_container(passes, "void", gpus(2), "kubernetes"),
    in_container(passes, "0,1", gpus(2)),
    in_container(passes, "0,1,", gpus(2)),
    in_container(fails, "0,1,2", gpus(2)),
    in_container(passes, "0,1,2", gpus(2), "none"),
    unknown(Gpus(state="failed", error="Unknown Error"), "the driver does not list the GPUs: Unknown Error."),
    unknown(Gpus(state="failed"), "the driver does not list the GPUs: failed."),
    unknown(gpus(0, devices=(), count=0), "the driver lists no GPUs."),
    unknown(Environment),
    given=(gpus(4), host(), environment()),
)
