"""What is new in a log since the log of a run that worked."""

from hypothesis import given
from hypothesis import strategies as st

from helpers.cases import cases
from kdoctor_diagnose.against import compare, kind_of
from kdoctor_diagnose.inputs import Log

GOOD = """\
I0000 00:00:1795715649.883476 17130 port.cc:153] oneDNN is on
Reading /data/a/part-0001.tfrecord
Epoch 1/2
8/8 ━━━ 0s 20ms/step - loss: 0.9
8/8 ━━━ 0s 22ms/step - loss: 0.5
"""


def log(text: str, size: int = 1 << 20) -> list[Log]:
    content = text.encode()
    return [Log("x", lambda: iter([content[start : start + size] for start in range(0, len(content), size)]))]


def test_equal_runs_have_nothing_new() -> None:
    again = GOOD.replace("1795715649", "1795799999").replace("/data/a/part-0001", "/mnt/b/c/part-0777")
    found = compare(log(again), log(GOOD))
    assert (found.kinds, found.new, found.problem) == (0, [], None)


@given(st.integers(1, 200))
def test_first_new_problem_step_time_and_loss_are_found_however_blocks_end(size: int) -> None:
    new = GOOD.replace("Epoch", "W0000 00:00:1795715649.1 7 loader.cc:9] slow storage\nEpoch").replace("ms/", "0ms/")
    found = compare(log(new.replace("loss: 0.5", "loss: nan"), size), log(GOOD))
    assert found.problem is not None
    assert (found.problem.line, found.problem.text, found.kinds) == (3, "slow storage", 1)
    assert [round(value or 0, 3) for value in found.step_s] == [0.021, 0.21]
    assert (found.loss[0], str(found.loss[1])) == (0.5, "nan")


def test_exception_and_not_its_traceback_is_the_new_problem() -> None:
    fails = 'Traceback (most recent call last):\n  File "/a/train.py", line 3, in f\n    warn(7)\nValueError: wrong\n'
    found = compare(log(GOOD + fails), log(GOOD))
    assert found.problem is not None
    assert (found.problem.text, found.kinds) == ("ValueError: wrong", 1)


def test_lines_that_did_not_come_and_other_versions_are_found() -> None:
    good = f"keras==3.10.0\nnumpy 2.1.0\nhost 10.0.0.1\n{GOOD}saved model.keras\n"
    now = good.replace("3.10.0", "3.15.1").replace("0.0.1", "0.0.2").removesuffix("saved model.keras\n")
    found = compare(log(now), log(good))
    assert [place.text for place in found.missing] == ["saved model.keras"]
    assert found.versions == {"keras": ("3.10.0", "3.15.1")}


@cases(
    ("Loaded 12 files from /data/x/y.bin in 3.5 s", "Loaded 7 files from /mnt/z/w.bin in 12 s", True),
    ("pointer 0x7f00aa", "pointer 0x11", True),
    ("GPU 0 is free", "GPU 0 is busy", False),
)
def test_lines_are_alike_that_differ_by_numbers_and_paths(one: str, other: str, *, alike: bool) -> None:
    assert (kind_of(one) == kind_of(other)) is alike
