import pytest

from helpers.cases import cases
from helpers.locks import lock
from kdoctor.lock.document import LockError, loads, text_of
from kdoctor.lock.values import fitting

UNFIT = [
    ("python", "version", "3.12\ntouch X\n#"),
    ("python", "version", "3.12;touch X;"),
    ("python", "platform", "linux\ntouch X"),
    ("keras", "backend", "jax\ntouch X"),
    ("driver", "version", "580.1\x1b[2J"),
    ("host", "image", "--privileged"),
    ("host", "image", "job $(touch X)"),
    ("conda", "a$(touch X)", "1=0"),
    ("conda", "numpy", "1 --channel=http://example.org"),
    ("packages", "--index-url=http://example.org", "1"),
    ("packages", "keras @ http://example.org/x.whl", "3"),
    ("packages", "keras", "3 --index-url=http://example.org"),
    ("environment", "A=B", "1"),
    ("environment", "A\nB", "1"),
    ("environment", "NCCL_DEBUG", "\x1b]0;title\x07"),
    *(("environment", name, "/opt/x") for name in ("PATH", "BASH_ENV", "IFS", "PIP_INDEX_URL", "LD_AUDIT", "PS4")),
    ("keras", "backend", "jax;touch X"),
    ("keras", "floatx", "float32'; touch X #"),
    ("keras", "epsilon", "$(touch X)"),
    ("keras", "image_data_format", "channels_last`touch X`"),
]


@pytest.mark.parametrize(("section", "name", "value"), UNFIT)
def test_lock_with_a_value_that_no_run_records_is_refused_at_its_place(section: str, name: str, value: str) -> None:
    whole = lock()
    facts = {**whole.facts, section: {**whole.facts.get(section, {}), name: value}}
    text = text_of(whole.model_copy(update={"facts": facts}))  # its digest is valid
    with pytest.raises(LockError) as caught:
        loads(text.encode(), "job.lock.yaml")
    line = int(caught.value.message.split(":")[1])
    assert text.splitlines()[line - 1].startswith("    ")
    assert fitting(section, {name: value}) == {}


def test_lock_whose_date_is_no_time_is_refused() -> None:
    text = text_of(lock().model_copy(update={"recorded": "2026\ntouch X"}))
    with pytest.raises(LockError, match="is not a time"):
        loads(text.encode(), "job.lock.yaml")


@cases(
    ("python", "version", "3.14.0rc1+"),
    ("packages", "tensorflow", "2.21.0+cuda.12-local"),
    ("packages", "a", "unknown"),
    ("conda", "_libgcc_mutex", "0.1=conda_forge"),
    ("conda", "pytz-deprecation-shim", "1!2024.1=pyh_0"),
    ("environment", "XLA_FLAGS", "--a=1\n\t--b='$(date)'"),
    ("environment", "NCCL_FOO-BAR", ""),
    ("host", "image", "ghcr.io/org/job:1.2@sha256:0a"),
    ("keras", "epsilon", "1e-07"),
    ("gpus", "model.NVIDIA H100 80GB HBM3", "8"),
)
def test_ordinary_value_fits(section: str, name: str, value: str) -> None:
    assert fitting(section, {name: value}) == {name: value}
