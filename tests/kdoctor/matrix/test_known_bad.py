"""Known-bad combinations: which releases may lead to them, which must, and the pins that prevent them."""

from typing import Any

import pytest
from packaging.requirements import Requirement

from helpers.cases import cases
from helpers.matrices import A100, H100, bad, release, small_matrix
from kdoctor.matrix.compatibility import judge
from kdoctor.matrix.known_bad import may_meet, pins_for
from kdoctor.matrix.model import KnownBad
from kdoctor.matrix.verdict import Machine

GPU = Machine(driver="560.28.03", gpus=(A100,), python="3.11", glibc="2.31")
CPU = Machine(gpus=(), python="3.11")
TWO = release("2.0.0")


@cases(
    ({"tensorflow": "==2.0.0"}, GPU, True),
    ({"tensorflow": ">2.0.0"}, GPU, False),
    ({"capability": ">=8.0"}, GPU, True),
    ({"capability": ">=9.0"}, GPU, False),
    ({"capability": ">=9.0"}, Machine(gpus=(A100, H100)), True),
    ({"capability": ">=8.0"}, Machine(), False),
    ({"python": "==3.11"}, GPU, True),
    ({"python": "==3.12"}, GPU, False),
    ({"python": "==3.11"}, Machine(gpus=(A100,)), False),
    ({"numpy": ">=2"}, GPU, True),  # numpy<2.2
    ({"numpy": ">=2.2"}, GPU, False),
    ({"scipy": ">=1"}, GPU, False),  # not required
    ({"cudnn": ">=9.5"}, GPU, True),  # >=9.3
    ({"cudnn": "<9"}, GPU, False),
    ({"tensorflow": "==2.0.0", "numpy": ">=2.2"}, GPU, False),
    ({"tensorflow": "==2.0.0", "numpy": ">=2"}, GPU, True),
    ({"numpy": ">=2", "tensorflow": "==2.1.0"}, GPU, False),
)
def test_combination_that_an_installation_may_lead_to(
    when: dict[str, str], machine: Machine, *, is_possible: bool
) -> None:
    assert may_meet(bad("x", when), TWO, machine, {}) is is_possible


def test_pin_that_excludes_a_combination_prevents_it() -> None:
    row = bad("x", {"numpy": ">=2"})
    assert may_meet(row, TWO, GPU, {"numpy": Requirement("numpy<2")}) is False
    assert may_meet(row, TWO, GPU, {"numpy": Requirement("numpy==2.1")}) is True


def test_jax_is_not_tensorflow() -> None:
    jax = release("2.0.0", distribution="jax", extra="cuda12")
    assert not may_meet(bad("x", {"tensorflow": "==2.0.0"}), jax, GPU, {})


def test_each_row_pins_unless_an_earlier_pin_excludes_it() -> None:
    rows = (
        bad("a", {"numpy": ">=2.1"}, install=("numpy<2.1",)),
        bad("b", {"numpy": ">=2.1"}, install=("numpy<1.5",)),  # excluded by the first
        bad("c", {"protobuf": ">=5"}, install=("protobuf<5", "keras>=3.12")),
        bad("d", {"tensorflow": ">=3"}, install=("scipy<1",)),
        bad("e", {"numpy": ">=2"}),
    )
    pins = pins_for(small_matrix(TWO, known_bad=rows), TWO, GPU)
    assert [str(pin) for pin in pins.values()] == ["numpy<2.1", "protobuf<5", "keras>=3.12"]


@pytest.mark.parametrize("when", [{"cudnn": ">=9.5"}, {"capability": ">=8.0"}])
def test_rows_about_gpus_pin_nothing_for_the_cpu(when: dict[str, str]) -> None:
    rows = (bad("a", when, install=("nvidia-cudnn-cu12<9.5",)), bad("b", {"numpy": ">=2"}, install=("numpy<2",)))
    matrix = small_matrix(TWO, known_bad=rows)
    assert list(pins_for(matrix, TWO, CPU)) == ["numpy"]
    assert list(pins_for(matrix, TWO, GPU)) == ["nvidia-cudnn-cu12", "numpy"]


PINNED = release("2.0.0", requires=("numpy==2.1.0", "protobuf>=4"))


@cases(
    (bad("x", {"tensorflow": "==2.0.0"}), GPU, "against"),
    (bad("x", {"tensorflow": "==2.0.0"}, effect="no-gpu"), GPU, "against"),
    (bad("x", {"tensorflow": "==2.0.0"}, effect="no-gpu"), CPU, None),
    (bad("x", {"tensorflow": "==2.0.0"}, effect="not-installable"), GPU, "against"),
    (bad("x", {"tensorflow": "==2.0.0"}, effect="not-installable", extra_only=True), GPU, None),
    (bad("x", {"tensorflow": "==2.0.0"}, effect="crash"), CPU, "against"),
    (bad("x", {"tensorflow": "==2.0.0"}, effect="unproven"), GPU, None),
    (bad("x", {"numpy": "==2.1.0"}), GPU, "against"),  # the release requires exactly that
    (bad("x", {"protobuf": ">=5"}), GPU, None),  # an older one may be installed
    (bad("x", {"tensorflow": "==2.0.0", "protobuf": ">=5"}), GPU, None),
    (bad("x", {"capability": ">=8.0"}), GPU, "against"),
    (bad("x", {"tensorflow": "==2.0.0"}, job="jit"), GPU, "caution"),
    (bad("x", {"capability": ">=8.0"}, job="jit"), GPU, "caution"),
    (bad("x", {"numpy": "==2.1.0"}, job="jit"), GPU, None),
    (bad("x", {"tensorflow": "==2.0.0"}, job="jit", effect="no-gpu"), GPU, None),
    (bad("x", {"tensorflow": "==2.1.0"}), GPU, None),
)
def test_kind_of_the_reason(row: KnownBad, machine: Machine, kind: str | None) -> None:
    verdict = judge(small_matrix(PINNED, known_bad=(row,)), PINNED, machine)
    found = [reason.kind for reason in verdict.reasons if reason.rule == "known-bad"]
    assert found == ([kind] if kind else [])


def test_rows_after_one_that_does_not_apply_are_judged() -> None:
    rows = (
        bad("a", {"capability": ">=8.0"}),
        bad("b", {"tensorflow": "==2.1.0"}),
        bad("c", {"tensorflow": "==2.0.0"}, effect="not-installable", extra_only=True),
        bad("d", {"tensorflow": "==2.0.0"}),
    )

    def failures(machine: Machine) -> list[Any]:
        return [reason.failure for reason in judge(small_matrix(TWO, known_bad=rows), TWO, machine).against]

    assert failures(CPU) == ["d"]
    assert failures(GPU) == ["a", "d"]


def test_pin_to_one_version_decides() -> None:
    """A row that pins a distribution to a version leads to a combination with exactly that version."""
    rows = (
        bad("a", {"numpy": ">=2.1"}, install=("numpy==2.0",)),
        bad("b", {"numpy": "==2.0"}),
        bad("c", {"numpy": "==2.0", "protobuf": ">=5"}),
    )
    verdict = judge(small_matrix(TWO, known_bad=rows), TWO, GPU)
    assert [reason.failure for reason in verdict.against] == ["b"]
