import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.specifiers import Specifier

from helpers.cases import cases
from helpers.catalogs import described, gpu_check, host_check, scenario, small_catalog, smoke_check
from helpers.locks import lock
from kdoctor.check import Check
from kdoctor.checklist.text import scalar
from kdoctor.diff.compare import (
    LOCK_CHANGED_ALONE,
    LOCK_OUTDATED,
    LOCK_UNCHANGED,
    VERSION_UNCHANGED,
    all_new,
    compare,
    compare_locks,
)
from kdoctor.diff.looseness import Looser, compare_numbers, compare_specifiers
from kdoctor.diff.model import Comparison, Kind
from kdoctor.diff.sources import Side, from_files
from kdoctor.facts import Host
from kdoctor.lock.document import Accepted, Lock, text_of
from kdoctor.lock.store import write_lock
from kdoctor.model import Evidence, Outcome


def limits_check() -> Check:
    def function(
        host: Host,
        *,
        max_used_mib: int = 10,
        most_factor: float = 1.3,
        least_share: float = 0.5,
        loss_tolerance: float = 0.1,
        allow_processes: bool = False,
        refusals: tuple[str, ...] = ("A", "B"),
        farthest: str = "NODE",
        idle_from: int = 8,
    ) -> Iterator[Outcome]:
        limits = (
            max_used_mib,
            most_factor,
            least_share,
            loss_tolerance,
            allow_processes,
            refusals,
            farthest,
            idle_from,
        )
        yield Evidence(subject=host.os, observed=str(limits))

    return described("host.limits")(function)


CATALOG = small_catalog(
    limits_check(),
    gpu_check("gpu.model-expected", judges=["gpus.model"]),
    host_check("versions.packages-expected", judges=["packages"]),
    host_check("environment.variables-expected", judges=["environment", "flags"]),
    host_check("versions.runtime-expected", judges=["framework", "sdk", "driver", "libraries", "image"]),
    scenario("smoke.edge", "edge-case"),
    smoke_check("smoke.edge", "smoke.edge"),
)

BASE = """\
schema: kdoctor/checklist/v1
name: job
version: 3
owner: ml-platform
assumptions:
  python: ">=3.10,<3.14"
  packages: {keras: "~=3.15", tf-keras: "==2.21.0"}
  environment: {NCCL_P2P_DISABLE: unset, TF_FORCE_GPU_ALLOW_GROWTH: "true"}
  framework: {tensorflow: "~=2.21.0", flavour: keras, backend: tensorflow}
  sdk: {cuda: "~=12.5"}
  driver: ">=570.86"
  libraries: {cudnn: ">=9.3", nccl: ">=2.21"}
  flags: {xla_gpu_autotune_level: "4", keras.floatx: float32}
  image: "registry.example/train:7*"
  gpus: {count: 8, model: "NVIDIA H100*"}
checks:
  - {id: gpu.count-expected}
  - {id: gpu.model-expected}
  - {id: gpu.free, accept_unknown: a container}
  - {id: host.limits, severity: warning, parameters: {max_used_mib: 20, refusals: [A, B]}}
  - {id: host.memory}
  - {id: versions.python-supported}
  - {id: versions.packages-expected}
  - {id: environment.variables-expected}
  - {id: versions.runtime-expected}
  - {id: smoke.baseline}
  - {id: smoke.edge}
scenarios:
  - {id: smoke.baseline, kind: baseline, replicas: gpus, expect: it trains}
  - {id: smoke.edge, kind: edge-case, replicas: 4, expect: it trains}
without: {failure-path: none was written yet}
waivers:
  - {check: host.memory, subject: host, reason: known, owner: ada, expires: 2030-06-30}
rollback:
  decides: ada
  within: an hour
  at_once: [versions.*]
  fix_forward: [host]
  investigate: [gpu]
"""

# An edit (old text, new text), the kind of change, and the place that it is reported at.
EDITS: tuple[tuple[str, str, Kind, str], ...] = (
    # heads
    ("name: job", "name: task", "moved", "name"),
    ("version: 3", "version: 4", "cosmetic", "version"),
    ("owner: ml-platform", "owner: hpc", "moved", "owner"),
    # versions
    (">=3.10,<3.14", ">=3.10,<3.15", "loosened", "assumptions.python"),
    (">=3.10,<3.14", ">=3.10", "loosened", "assumptions.python"),
    (">=3.10,<3.14", ">=3.9,<3.14", "loosened", "assumptions.python"),
    (">=3.10,<3.14", ">=3.11,<3.14", "tightened", "assumptions.python"),
    (">=3.10,<3.14", "==3.11.*", "tightened", "assumptions.python"),
    (">=3.10,<3.14", ">=3.10,<3.14,!=3.12.1", "tightened", "assumptions.python"),
    (">=3.10,<3.14", ">=3.11,<3.15", "moved", "assumptions.python"),
    (">=3.10,<3.14", "<3.14,>=3.10", "cosmetic", "assumptions.python"),
    ('  python: ">=3.10,<3.14"\n', "", "loosened", "assumptions.python"),
    ('keras: "~=3.15"', 'keras: "~=3.15.1"', "tightened", "assumptions.packages.keras"),
    ('keras: "~=3.15"', 'keras: "~=3.14"', "loosened", "assumptions.packages.keras"),
    ('keras: "~=3.15"', 'keras: "==3.15.1"', "tightened", "assumptions.packages.keras"),
    ('keras: "~=3.15"', 'keras: "~=4.0"', "moved", "assumptions.packages.keras"),
    ('keras: "~=3.15"', 'keras: ">=3.15,<4"', "cosmetic", "assumptions.packages.keras"),
    ('keras: "~=3.15", ', "", "loosened", "assumptions.packages.keras"),
    ('keras: "~=3.15"', 'keras: "~=3.15", numpy: ">=2"', "tightened", "assumptions.packages.numpy"),
    ('"==2.21.0"', '"==2.20.0"', "moved", "assumptions.packages.tf-keras"),
    # variables
    ("NCCL_P2P_DISABLE: unset, ", "", "loosened", "assumptions.environment.NCCL_P2P_DISABLE"),
    ("NCCL_P2P_DISABLE: unset", 'NCCL_P2P_DISABLE: "1"', "moved", "assumptions.environment.NCCL_P2P_DISABLE"),
    ("{NCCL_P2P", "{NCCL_DEBUG: WARN, NCCL_P2P", "tightened", "assumptions.environment.NCCL_DEBUG"),
    # framework, SDK, driver, libraries, flags, image
    ('tensorflow: "~=2.21.0"', 'tensorflow: "~=2.21"', "loosened", "assumptions.framework.tensorflow"),
    ('tensorflow: "~=2.21.0"', 'tensorflow: "~=2.22.0"', "moved", "assumptions.framework.tensorflow"),
    (", flavour: keras", ", flavour: tf-keras", "moved", "assumptions.framework.flavour"),
    (", flavour: keras", "", "loosened", "assumptions.framework.flavour"),
    (", backend: tensorflow", ", backend: jax", "moved", "assumptions.framework.backend"),
    (", backend: tensorflow", ', backend: tensorflow, keras: "~=3.15"', "tightened", "assumptions.framework.keras"),
    ('cuda: "~=12.5"', 'cuda: "~=12.3"', "loosened", "assumptions.sdk.cuda"),
    ('cuda: "~=12.5"', 'cuda: "~=12.8"', "tightened", "assumptions.sdk.cuda"),
    ('cuda: "~=12.5"', 'cuda: "~=12.5", cudnn: ">=9"', "tightened", "assumptions.sdk.cudnn"),
    ('driver: ">=570.86"', 'driver: ">=550.54"', "loosened", "assumptions.driver"),
    ('driver: ">=570.86"', 'driver: ">=570.124.06"', "tightened", "assumptions.driver"),
    ('driver: ">=570.86"', 'driver: "<570"', "moved", "assumptions.driver"),
    ('driver: ">=570.86"', 'driver: ">=570.086"', "cosmetic", "assumptions.driver"),
    ('  driver: ">=570.86"\n', "", "loosened", "assumptions.driver"),
    ('cudnn: ">=9.3"', 'cudnn: ">=9.3,<10"', "tightened", "assumptions.libraries.cudnn"),
    ('cudnn: ">=9.3"', 'cudnn: ">=8.9"', "loosened", "assumptions.libraries.cudnn"),
    (', nccl: ">=2.21"', "", "loosened", "assumptions.libraries.nccl"),
    ('autotune_level: "4"', 'autotune_level: "2"', "moved", "assumptions.flags.xla_gpu_autotune_level"),
    ('xla_gpu_autotune_level: "4", ', "", "loosened", "assumptions.flags.xla_gpu_autotune_level"),
    ("keras.floatx: float32", "keras.floatx: float16", "moved", "assumptions.flags.keras.floatx"),
    ("keras.floatx: float32", "keras.floatx: float32, tf_xla_auto_jit: unset", "tightened",
     "assumptions.flags.tf_xla_auto_jit"),
    ("train:7*", "train:*", "loosened", "assumptions.image"),
    ("train:7*", "train:7.1", "tightened", "assumptions.image"),
    ("train:7*", "train:8*", "moved", "assumptions.image"),
    ("train:7*", "train:7**", "cosmetic", "assumptions.image"),
    ('  image: "registry.example/train:7*"\n', "", "loosened", "assumptions.image"),
    # GPUs
    ("count: 8", "count: 4", "moved", "assumptions.gpus.count"),
    ("count: 8", "count: 0", "loosened", "assumptions.gpus.count"),
    ("count: 8", "at_least: 8", "loosened", "assumptions.gpus.count"),
    ("count: 8", "at_least: 4", "loosened", "assumptions.gpus.count"),
    ("count: 8", "at_least: 9", "moved", "assumptions.gpus.count"),
    ("count: 8, ", "", "loosened", "assumptions.gpus.count"),
    (', model: "NVIDIA H100*"', "", "loosened", "assumptions.gpus.model"),
    ("H100*", "H200*", "moved", "assumptions.gpus.model"),
    ("H100*", "H*", "loosened", "assumptions.gpus.model"),
    ("H100*", "H100 80GB*", "tightened", "assumptions.gpus.model"),
    # checks
    ("  - {id: host.memory}\n", "  - {id: host.memory}\n  - {id: host.shared-memory}\n", "tightened",
     "checks.host.shared-memory"),
    ("  - {id: gpu.model-expected}\n", "", "loosened", "checks.gpu.model-expected"),
    ("severity: warning", "severity: info", "loosened", "checks.host.limits.severity"),
    ("severity: warning", "severity: error", "tightened", "checks.host.limits.severity"),
    ("severity: warning, ", "", "tightened", "checks.host.limits.severity"),
    ("{id: host.memory}", "{id: host.memory, severity: warning}", "loosened", "checks.host.memory.severity"),
    (", accept_unknown: a container", "", "tightened", "checks.gpu.free.accept_unknown"),
    ("accept_unknown: a container", "accept_unknown: a pod", "cosmetic", "checks.gpu.free.accept_unknown"),
    ("{id: host.memory}", "{id: host.memory, accept_unknown: why not}", "loosened",
     "checks.host.memory.accept_unknown"),
    # parameters
    ("max_used_mib: 20", "max_used_mib: 30", "loosened", "checks.host.limits.parameters.max_used_mib"),
    ("max_used_mib: 20", "max_used_mib: 15", "tightened", "checks.host.limits.parameters.max_used_mib"),
    ("max_used_mib: 20", "max_used_mib: 20, most_factor: 1.4", "loosened",
     "checks.host.limits.parameters.most_factor"),
    ("max_used_mib: 20", "max_used_mib: 20, most_factor: 1.2", "tightened",
     "checks.host.limits.parameters.most_factor"),
    ("max_used_mib: 20, ", "", "tightened", "checks.host.limits.parameters.max_used_mib"),
    ("max_used_mib: 20", "max_used_mib: 20, least_share: 0.4", "loosened", "checks.host.limits.parameters.least_share"),
    ("max_used_mib: 20", "max_used_mib: 20, least_share: 0.6", "tightened",
     "checks.host.limits.parameters.least_share"),
    ("max_used_mib: 20", "max_used_mib: 20, loss_tolerance: 0.2", "loosened",
     "checks.host.limits.parameters.loss_tolerance"),
    ("max_used_mib: 20", "max_used_mib: 20, loss_tolerance: 0.01", "tightened",
     "checks.host.limits.parameters.loss_tolerance"),
    ("max_used_mib: 20", "max_used_mib: 20, allow_processes: true", "loosened",
     "checks.host.limits.parameters.allow_processes"),
    ("refusals: [A, B]", "refusals: [A, B, C]", "loosened", "checks.host.limits.parameters.refusals"),
    ("refusals: [A, B]", "refusals: [A]", "tightened", "checks.host.limits.parameters.refusals"),
    ("refusals: [A, B]", "refusals: [A, C]", "moved", "checks.host.limits.parameters.refusals"),
    ("refusals: [A, B]", "refusals: [B, A]", "cosmetic", "checks.host.limits.parameters.refusals"),
    ("max_used_mib: 20", "max_used_mib: 20, farthest: SYS", "loosened", "checks.host.limits.parameters.farthest"),
    ("max_used_mib: 20", "max_used_mib: 20, farthest: PIX", "tightened", "checks.host.limits.parameters.farthest"),
    # scenarios
    ("  - {id: smoke.edge, kind: edge-case, replicas: 4, expect: it trains}\n", "", "loosened", "scenarios.smoke.edge"),
    ("replicas: 4", "replicas: 2", "loosened", "scenarios.smoke.edge.replicas"),
    ("replicas: 4", "replicas: 8", "tightened", "scenarios.smoke.edge.replicas"),
    ("replicas: 4", "replicas: gpus", "tightened", "scenarios.smoke.edge.replicas"),
    ("replicas: gpus", "replicas: 8", "loosened", "scenarios.smoke.baseline.replicas"),
    ("replicas: 4, expect: it trains", "replicas: 4, expect: it still trains", "cosmetic",
     "scenarios.smoke.edge.expect"),
    ("none was written yet", "it is being written", "cosmetic", "without.failure-path"),
    # waivers
    ("expires: 2030-06-30", "expires: 2030-07-01", "loosened", "waivers.host.memory (host).expires"),
    ("expires: 2030-06-30", "expires: 2030-06-29", "tightened", "waivers.host.memory (host).expires"),
    ("owner: ada, ", "owner: bob, ", "moved", "waivers.host.memory (host).owner"),
    ("reason: known", "reason: well known", "cosmetic", "waivers.host.memory (host).reason"),
    ("subject: host", 'subject: "*"', "loosened", "waivers.host.memory (*)"),
    ("subject: host", 'subject: "*"', "tightened", "waivers.host.memory (host)"),
    ("waivers:\n", "waivers:\n  - {check: gpu.free, reason: x, owner: y, expires: 2030-01-01}\n", "loosened",
     "waivers.gpu.free (*)"),
    ("  - {check: host.memory, subject: host, reason: known, owner: ada, expires: 2030-06-30}\n", "", "tightened",
     "waivers.host.memory (host)"),
    # rollback policy
    ("decides: ada", "decides: bob", "moved", "rollback.decides"),
    ("within: an hour", "within: a day", "moved", "rollback.within"),
    ("at_once: [versions.*]", "at_once: []", "loosened", "rollback.versions.*"),
    ("at_once: [versions.*]", "at_once: [versions.*, gpu]", "tightened", "rollback.gpu"),
    ("fix_forward: [host]", "fix_forward: []", "loosened", "rollback.host"),
    ("fix_forward: [host]", "fix_forward: [host, gpu.free]", "tightened", "rollback.gpu.free"),
    ("investigate: [gpu]", "investigate: []", "cosmetic", "rollback.gpu"),
    (re.search(r"rollback:.*", BASE, re.DOTALL)[0], "", "loosened", "rollback"),  # type: ignore[index]
)  # fmt: skip


def side(folder: Path, text: str, found: Lock | None = None, name: str = "job.yaml") -> Side:
    path = folder / name
    path.write_text(text)
    if found:
        path.with_suffix(".lock.yaml").write_text(text_of(found))
    return from_files(str(path), CATALOG)


def compared(folder: Path, old: str, new: str) -> Comparison:
    return compare(side(folder, old), side(folder, new))


def edited(old: str, new: str) -> str:
    assert BASE.count(old) >= 1, old
    text = BASE.replace(old, new, 1)
    # A valid checklist names only existing ids and states its assumptions, so related parts change too.
    if "model-expected" in old:
        text = text.replace(', model: "NVIDIA H100*"', "")
    if "id: smoke.edge, kind" in old:
        text = text.replace("  - {id: smoke.edge}\n", "").replace("without: {", "without: {edge-case: slow, ")
    return text


MIRRORED: dict[Kind, Kind] = {"loosened": "tightened", "tightened": "loosened"}
"""What a change of a kind is the other way, if it is another kind."""


@pytest.mark.parametrize(("old", "new", "kind", "where"), EDITS, ids=[f"{n}-{edit[3]}" for n, edit in enumerate(EDITS)])
def test_edit_has_its_kind_and_its_opposite_the_other(
    tmp_path: Path, old: str, new: str, kind: Kind, where: str
) -> None:
    there, back = compared(tmp_path, BASE, edited(old, new)), compared(tmp_path, edited(old, new), BASE)
    assert [change.kind for change in there.changes if change.where == where] == [kind]
    assert {(item.where, MIRRORED.get(item.kind, item.kind), item.new, item.old) for item in there.changes} == {
        (item.where, item.kind, item.old, item.new) for item in back.changes
    }


@cases(("max_used_mib: 20", "max_used_mib: 20, idle_from: 5"), ("train:7*", "train:?*"))
def test_change_that_is_not_known_to_tighten_loosens(tmp_path: Path, old: str, new: str) -> None:
    for one, other in ((BASE, edited(old, new)), (edited(old, new), BASE)):
        assert [change.kind for change in compared(tmp_path, one, other).changes] == ["loosened"]


def test_checklist_equals_itself(tmp_path: Path) -> None:
    found = compared(tmp_path, BASE, BASE)
    assert (found.changes, found.notes) == ((), ())


def _shuffled(value: Any, draw: st.DrawFn) -> Any:
    if isinstance(value, dict):
        return {key: _shuffled(value[key], draw) for key in draw(st.permutations(list(value)))}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [_shuffled(item, draw) for item in draw(st.permutations(value))]
    return value


@st.composite
def reordered(draw: st.DrawFn) -> str:
    text: str = yaml.safe_dump(_shuffled(yaml.safe_load(BASE), draw), sort_keys=False)
    return "".join(f"{line}  # seen\n" if draw(st.booleans()) and line else f"{line}\n" for line in text.splitlines())


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(reordered())
def test_order_and_comments_do_not_matter(tmp_path: Path, text: str) -> None:
    assert compared(tmp_path, BASE, text).changes == ()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(range(len(EDITS))), min_size=1, max_size=4, unique=True))
def test_several_edits_are_mirrored(tmp_path: Path, chosen: list[int]) -> None:
    text = BASE
    for number in chosen:
        old, new, *_ = EDITS[number]
        if text.count(old) == 1 and "model-expected" not in old and "kind: edge-case" not in old and old != "rollback":
            text = text.replace(old, new)
    try:
        there, back = compared(tmp_path, BASE, text), compared(tmp_path, text, BASE)
    except Exception as error:  # noqa: BLE001 - two edits together may make a checklist that is refused
        assert "job.yaml" in str(error)  # noqa: PT017 - the message names the file
        return
    assert {(item.where, MIRRORED.get(item.kind, item.kind)) for item in there.changes} == {
        (item.where, item.kind) for item in back.changes
    }


def locked(folder: Path, text: str, **changes: Any) -> Side:
    chosen = side(folder, text)
    return replace(chosen, lock=lock(**{"expectations": chosen.expectations, **changes}))


def test_check_that_is_left_out_is_loosened_once(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text(BASE)
    over = "schema: kdoctor/checklist/v1\nname: job\nversion: 3\nextends: ./team.yaml\n"
    found = compared(tmp_path, over, f"{over}without: {{gpu.free: unused}}\n")
    assert [(one.kind, one.where) for one in found.changes] == [
        ("loosened", "checks.gpu.free"),
        ("cosmetic", "without.gpu.free"),
    ]


def test_changed_facts_of_the_lock_are_moved(tmp_path: Path) -> None:
    facts = {**lock().facts, "packages": {**lock().facts["packages"], "keras": "3.16.0"}}
    new = locked(tmp_path, BASE, facts=facts, accepted=(Accepted(check="gpu.free", reason="x"),), measured={})
    found = compare(locked(tmp_path, BASE), new)
    assert [(item.kind, item.where, item.old, item.new) for item in found.changes][:2] == [
        ("loosened", "lock.accepted.gpu.free", None, "x"),
        ("moved", "lock.packages.keras", "3.15.1", "3.16.0"),
    ]
    assert found.changes[2].where.startswith("lock.smoke.baseline/")
    assert found.notes == (LOCK_CHANGED_ALONE,)


def test_accepted_failure_that_passes_again_is_tightened(tmp_path: Path) -> None:
    accepting = locked(tmp_path, BASE, accepted=(Accepted(check="gpu.free", reason="x"),))
    (found,) = compare(accepting, locked(tmp_path, BASE)).changes
    assert (found.kind, found.where, found.old, found.new) == ("tightened", "lock.accepted.gpu.free", "x", None)


def test_lock_of_another_day_is_cosmetic(tmp_path: Path) -> None:
    found = compare(locked(tmp_path, BASE), locked(tmp_path, BASE, recorded="2026-05-01T06:00:00+00:00"))
    assert [(item.kind, item.where) for item in found.changes] == [("cosmetic", "lock.recorded")]
    assert found.notes == ()


def test_changed_expectations_without_a_new_lock_are_noted(tmp_path: Path) -> None:
    old = locked(tmp_path, BASE)
    new = replace(side(tmp_path, BASE.replace("severity: warning", "severity: error")), lock=old.lock)
    assert compare(old, new).notes == (LOCK_UNCHANGED.format(new.checklist.source), VERSION_UNCHANGED)


def test_new_lock_next_to_changed_expectations_is_only_new(tmp_path: Path) -> None:
    changed = BASE.replace("severity: warning", "severity: error")
    assert compare(side(tmp_path, BASE), locked(tmp_path, changed)).notes == (VERSION_UNCHANGED,)
    assert compare(locked(tmp_path, BASE), side(tmp_path, changed)).notes == (VERSION_UNCHANGED,)
    assert compare(side(tmp_path, BASE), side(tmp_path, changed.replace("name: ", "name: other-"))).notes == ()


def test_numbers_of_gpus_are_named(tmp_path: Path) -> None:
    (found,) = [
        change
        for change in compared(tmp_path, edited("count: 8", "at_least: 2"), BASE).changes
        if change.where == "assumptions.gpus.count"
    ]
    assert (found.old, found.new) == ("at least 2", "exactly 8")


POST_RELEASES = Specifier(">2.0.dev1").contains("2.0.post1", prereleases=True)
"""Whether ``>2.0.dev1`` allows 2.0.post1, as the specification says. Older releases of packaging do not."""


@cases(
    (">2.0.dev1", ">=2.0", "tightened"),  # 2.0a1
    ("<2.0.post5", "<=2.0", "tightened"),  # 2.0.post1
    (">1!1.0,<1!1.1", ">1!1.0.5,<1!1.1", "tightened"),
    (">1!2", ">1!1", "loosened"),
    (">=2.0.0", ">=2", "cosmetic"),
    ("==2.*", ">=2,<3", "tightened"),  # the wildcard allows 2.0.dev1
    (">=1.0", ">1.0", "tightened"),
    ("<=1.0", "<1.0", "tightened"),
    (">=1.0", ">=1.0a0", "loosened"),
    (">=1.0.dev0", ">=1.0a0", "tightened"),
    ("==1.0", "==1.0.*", "loosened"),
    ("~=1.4", ">=1.4,<2", "cosmetic"),
    ("~=1.4.5", ">=1.4.5,<1.5", "cosmetic"),
    ("!=1.5", "", "loosened"),
    ("", "!=1.5.*", "tightened"),
    (">=0.5", "", "loosened"),
    (">=1", "!=0.5,>=1", "cosmetic"),
    (">=1.2,!=2.5.7", ">=1.2,!=2.5.8", "moved"),
    (">=1!1.0", ">=1!2.0", "tightened"),
    (">=1!1.0", ">=1.0", "loosened"),
    ("==1!1.*", ">=1!1.dev0,<=1!1.post1", "tightened"),  # 1!1.1
    ("==1.4.*", ">=1.4.dev0,<=1.4.post1", "tightened"),  # 1.4.1
    ("==1.4.*", ">=1.4.dev0,<1.6.dev0", "loosened"),  # 1.5
    ("==1.4.*", "==1.4.0.*", "tightened"),  # 1.4.1
    (">=0.dev0", ">=0", "tightened"),  # 0.dev0, although nothing older is named
    ("<0.1", "<0", "tightened"),
    (">1.3rc0", ">=1.3", "tightened"),  # 1.3rc1
    (">1.3rc0", ">=1.3rc2", "tightened"),
    (">1.3rc4", ">=1.3", "tightened"),  # 1.3rc5
    (">1.3.dev4", ">=1.3.dev6", "tightened"),  # 1.3.dev5
    (">1.3.post1", ">=1.3.post3", "tightened"),  # 1.3.post2
    (">1.3.dev4", ">=1.3a0", "tightened"),  # 1.3.dev5
    ("<2", ">2.1,<2.1.1", "moved"),  # 2.1.0.999
    ("<1!2", ">1!2", "moved"),  # 1!3
    (">1.3.post1", ">1.3.post1,>1.3", "tightened"),  # 1.3.post2, which >1.3 does not allow
)
def test_specifiers_are_compared_by_the_versions_that_they_allow(old: str, new: str, kind: Kind) -> None:
    if not POST_RELEASES and re.search(r"[<>][0-9.]+(\.dev|rc|\.post5)", old) and kind == "tightened":
        kind = "moved"
    assert compare_specifiers(old, new) == kind


@cases(
    ("NODE", 1, "farther", "moved"),
    (1, "NODE", "farther", "moved"),
    ("A", ["A"], "more", "moved"),
    (["A"], "A", "more", "moved"),
    (1, "2", "more", "moved"),
    ("1", 2, "more", "moved"),
    (1, 2, "smaller", "tightened"),
    (2, 1, "smaller", "loosened"),
    (1, 2, "greater", "loosened"),
    (2, 1, "greater", "tightened"),
    (["A"], ["A"], "greater", "moved"),
    (["A"], ["A", "B"], "more", "loosened"),
    (["A", "B"], ("B",), "more", "tightened"),
    (["A", "B"], {"B", "A"}, "more", "cosmetic"),
    (["A"], ["B"], "more", "moved"),
    ("PIX", "SYS", "farther", "loosened"),
    ("SYS", "internal", "farther", "tightened"),
)
def test_values_of_different_types_are_moved(old: object, new: object, looser: Looser, kind: Kind) -> None:
    assert compare_numbers(old, new, looser) == kind


def test_added_and_removed_locks_are_changes(tmp_path: Path) -> None:
    with_lock, without = locked(tmp_path, BASE), side(tmp_path, BASE)
    (added,), (removed,) = compare(without, with_lock).changes, compare(with_lock, without).changes
    assert (added.kind, added.where, added.old, added.new) == ("tightened", "lock", None, lock().recorded)
    assert (removed.kind, removed.where, removed.old, removed.new) == ("loosened", "lock", lock().recorded, None)


def test_lock_next_to_a_file_is_read(tmp_path: Path) -> None:
    chosen = side(tmp_path, BASE)
    write_lock(tmp_path / "job.lock.yaml", lock(expectations=chosen.expectations), None)
    assert side(tmp_path, BASE).lock == lock(expectations=chosen.expectations)


def test_most_severe_kind_is_first(tmp_path: Path) -> None:
    text = BASE.replace("severity: warning", "severity: info").replace("version: 3", "version: 4")
    text = text.replace("decides: ada", "decides: bob").replace("replicas: 4", "replicas: 8")
    kinds = [change.kind for change in compared(tmp_path, BASE, text).changes]
    assert kinds == ["loosened", "tightened", "moved", "cosmetic"]


def test_lock_that_lost_its_expectation_of_the_checklist_is_outdated(tmp_path: Path) -> None:
    old = locked(tmp_path, BASE)
    stale = replace(old, lock=lock(expectations="sha256:another"))
    outdated = LOCK_OUTDATED.format(stale.checklist.source)
    assert compare(stale, stale).notes == (outdated,)
    assert compare(side(tmp_path, BASE), stale).notes == (outdated,)


def test_recorded_change_with_an_expected_one_raises_no_question(tmp_path: Path) -> None:
    facts = {**lock().facts, "packages": {**lock().facts["packages"], "keras": "3.16.0"}}
    changed = BASE.replace("severity: warning", "severity: error").replace("version: 3", "version: 4")
    assert compare(locked(tmp_path, BASE), locked(tmp_path, changed, facts=facts)).notes == ()


def test_lock_recorded_again_answers_the_changed_expectations(tmp_path: Path) -> None:
    changed = BASE.replace("severity: warning", "severity: error").replace("version: 3", "version: 4")
    again = locked(tmp_path, changed, recorded="2026-05-01T06:00:00+00:00")
    assert compare(locked(tmp_path, BASE), again).notes == ()


def test_cosmetic_change_is_not_an_expectation(tmp_path: Path) -> None:
    changed = BASE.replace("accept_unknown: a container", "accept_unknown: a pod")
    assert compare(side(tmp_path, BASE), side(tmp_path, changed)).notes == ()


def test_new_checklist_is_one_tightened_change(tmp_path: Path) -> None:
    new = replace(side(tmp_path, BASE), shown="ci/job.yaml")
    found = all_new(new, "main")
    assert (found.old, found.new, found.notes) == ("main", "ci/job.yaml", ())
    (only,) = found.changes
    assert (only.kind, only.where, only.old, only.new) == ("tightened", "checklist", None, "job version 3")
    assert only.why.startswith("ci/job.yaml is not in main")


def test_measured_value_that_one_lock_lacks_is_shown_as_none(tmp_path: Path) -> None:
    measured = lock().measured
    name = next(iter(measured))
    having, lacking = lock(measured={name: measured[name]}), lock(measured={})
    for one, other in ((having, lacking), (lacking, having)):
        (found,) = compare_locks(one, other, "a", "a").changes
        values = [scalar(measured[name].value) if side is having else None for side in (one, other)]
        assert (found.where, [found.old, found.new]) == (f"lock.{name}", values)


def test_facts_of_a_section_that_one_lock_lacks_have_moved() -> None:
    one, other = lock(facts={"conda": {"python": "3.11"}}), lock(facts={"libraries": {"nccl": "2.27"}})
    assert [item.where for item in compare_locks(one, other, "a", "a").changes] == [
        "lock.conda.python",
        "lock.libraries.nccl",
    ]


@cases(("2030-06-30", "2030-07-01", "later"), ("2030-07-01", "2030-06-30", "known"))
def test_waiver_that_expires_last_counts(tmp_path: Path, first: str, then: str, reason: str) -> None:
    """The judge uses the one that expires last, in whatever order they are written."""
    line = "  - {check: host.memory, subject: host, reason: known, owner: ada, expires: 2030-06-30}\n"
    both = line.replace("2030-06-30", first) + line.replace("known", "later").replace("2030-06-30", then)
    alone = line.replace("known", reason).replace("2030-06-30", "2030-07-01")
    assert compared(tmp_path, BASE.replace(line, both), BASE.replace(line, alone)).changes == ()


@cases(
    ("severity: warning", "severity: info", "lowered"),
    ("severity: warning", "severity: error", "raised"),
    ("max_used_mib: 20", "max_used_mib: 30", "widened"),
    ("max_used_mib: 20", "max_used_mib: 15", "narrowed"),
    ("max_used_mib: 20", "max_used_mib: 20, idle_from: 5", "may be looser"),
    ("replicas: gpus", "replicas: 8", "on the CPU instead of"),
    ("replicas: 4", "replicas: gpus", "instead of on the CPU"),
    ("replicas: 4", "replicas: 2", "fewer"),
    ("replicas: 4", "replicas: 8", "more replicas"),
    ("expires: 2030-06-30", "expires: 2030-07-01", "extended"),
    ("expires: 2030-06-30", "expires: 2030-06-29", "shortened"),
    ("fix_forward: [host]", "fix_forward: []", "less severe"),
    ("fix_forward: [host]", "fix_forward: [host, gpu.free]", "more severe"),
    ("investigate: [gpu]", "investigate: []", "investigated anyway"),
    (", accept_unknown: a container", "", "no longer"),
    ("count: 8", "at_least: 4", "fewer GPUs"),
    ("count: 8", "at_least: 9", "different number"),
)
def test_reason_says_what_the_change_means(tmp_path: Path, old: str, new: str, expected: str) -> None:
    (found,) = compared(tmp_path, BASE, edited(old, new)).changes
    assert expected in found.why
