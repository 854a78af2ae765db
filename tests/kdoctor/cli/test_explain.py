import itertools
import re
import subprocess
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from helpers.cases import cases
from helpers.command import KDOCTOR, ON_PATH, environ, kdoctor_here
from kdoctor.catalog.load import load_catalog
from kdoctor.cli.explain import Known, explain_name
from kdoctor.commands import again
from kdoctor.failures.known import load_failures
from kdoctor.matrix.compatibility import compatible
from kdoctor.matrix.gpus import NamedGpu
from kdoctor.matrix.keras import defects
from kdoctor.matrix.truth import by_scenario, titles
from kdoctor.matrix.verdict import Machine
from kdoctor.report.phrases import CONCLUSIONS
from kdoctor_lint.registry import RULES

LOG = (
    "2026-11-21 15:18:02.514360: I tensorflow/tsl/cuda/cudart_stub.cc:31] Could not find cuda drivers on your machine, "
    "GPU will not be used.\n"
    "E0000 00:00:1795351963.3 11528 cuda_platform.cc:52] failed call to cuInit: INTERNAL: CUDA error: Failed call to "
    "cuInit: UNKNOWN ERROR (303)\n"
)


def piped(text: str) -> subprocess.CompletedProcess[str]:
    command = [*KDOCTOR, "explain", "-"]
    return subprocess.run(command, check=False, capture_output=True, text=True, input=text, env=environ(PATH=ON_PATH))


def test_error_message_is_explained(screen: SnapshotAssertion) -> None:
    done = kdoctor_here("explain", "Could not find cuda drivers")
    assert done.returncode == 0
    assert done.stdout == screen


def test_log_on_stdin_is_explained_with_the_most_specific_failure_first(screen: SnapshotAssertion) -> None:
    done = piped(LOG)
    assert done.returncode == 0
    assert done.stdout == screen


def test_words_need_no_quotes() -> None:
    assert kdoctor_here("explain", "could", "not", "find", "cuda", "drivers").stdout.count("cudart_not_found") == 1


def test_unknown_message_exits_with_1_and_names_similar_ones() -> None:
    done = kdoctor_here("explain", "ModuleNotFoundError: No module named 'requests'")
    assert (done.returncode, "kdoctor explain" in done.stdout) == (1, False)
    near = kdoctor_here("explain", "could nt find cuda librarys on the machine")
    assert (near.returncode, "kdoctor explain cudart_not_found" in near.stdout) == (1, True)


def test_name_is_found_by_its_parts() -> None:
    named = kdoctor_here("explain", "uneven final batch")
    assert (named.returncode, named.stdout.startswith("smoke.uneven-final-batch")) == (0, True)
    assert kdoctor_here("explain", "Same", "bits").stdout.startswith("smoke.same-bits")
    misspelt = kdoctor_here("explain", "gradient acumulation")
    assert (misspelt.returncode, "'gradient accumulation'" in misspelt.stderr) == (2, True)
    assert kdoctor_here("explain", "the training hangs at start").returncode == 1
    assert kdoctor_here("explain", "Graph execution error").returncode == 1  # a message, and near no name
    mentioned = kdoctor_here("explain", "last batch")
    assert (mentioned.returncode, "nan_first_step" in mentioned.stdout) == (1, True)
    *_, more, _, last = kdoctor_here("explain", "NaN").stdout.splitlines()
    assert (more.endswith(" more"), last.endswith(": kdoctor explain nan_first_step")) == (True, True)
    assert kdoctor_here("explain", "Keras").stdout.startswith("keras 3.")
    both = kdoctor_here("explain", "KD101 host.memory")
    assert (both.stdout.startswith("KD101"), "\nhost.memory" in both.stdout) == (True, True)


def test_words_of_the_report_are_explained() -> None:
    known = Known()
    words = {"left out", "unknown", "skipped", "replica", "global batch size", *CONCLUSIONS.values()}
    pages = {page.stem for page in (Path(__file__).parents[3] / "docs/how-to").glob("*.md")}
    words |= {page for page in pages - {"ci"} if page.isalpha()}
    assert [word for word in words if not explain_name(word.lower(), known)] == []
    term = kdoctor_here("explain", "NOT READY")
    assert (term.returncode, term.stdout.splitlines()[0]) == (0, "not ready")
    assert "gpu.replicas-match" in explain_name("replica", known) == explain_name("replicas", known)
    assert not [word for word in ("lock", "ready", "left out") if "Checks:" in explain_name(word, known)]
    assert len(explain_name("keras 2.15.0", known).splitlines()) == 2


@cases(
    ("Xid 62", "xid", "Internal micro-controller halt"),  # NVIDIA's catalog of Xids
    ("NVRM: Xid (PCI:0000:3b:00): 62, pid=1", "xid", "Internal micro-controller halt"),
    ("xid_79 on GPU 3", "gpu_lost", "no longer answers"),
    ("SXid: 12028", "sxid", "egress nonposted PRIV error"),
)
def test_code_of_the_driver_is_explained_with_its_meaning(text: str, name: str, meaning: str) -> None:
    done = kdoctor_here("explain", text)
    assert done.returncode == 0
    assert done.stdout.splitlines()[2].startswith(f"{name} ")
    assert meaning in " ".join(done.stdout.split())


def test_fix_is_run_by_root_without_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "sudo dmesg" in explain_name("killed_by_signal_9", Known())
    monkeypatch.setattr(again, "root_without_sudo", True)
    assert "sudo" not in explain_name("killed_by_signal_9", Known())


def test_check_of_a_failure_trains_on_the_cpu_where_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "kdoctor check --select smoke.model-outside-scope\n" in explain_name("model_outside_scope", Known())
    monkeypatch.setattr(again, "has_driver", False)
    trained = explain_name("model_outside_scope", Known())
    assert "kdoctor check --checklist cpu-smoke --select smoke.model-outside-scope\n" in trained
    assert "kdoctor smoke --replicas 2 outside-scope\n" in trained
    assert "kdoctor check --no-smoke --select versions." in explain_name("cudart_not_found", Known())
    assert "kdoctor check --select gpu.responding" in explain_name("nccl_cuda_error", Known())


def test_empty_text_is_a_usage_error() -> None:
    assert piped(" \n").returncode == kdoctor_here("explain", "").returncode == 2


def test_commands_of_an_explanation_name_the_checks() -> None:
    shown = kdoctor_here("explain", "keras3_bn_empty_replica").stdout
    assert "kdoctor check --select smoke.starved-replica" in shown
    assert "kdoctor lint ." in shown
    assert "kdoctor smoke misuse" in kdoctor_here("explain", "jit_compile_true_multi").stdout


@pytest.mark.parametrize(
    "name", ["gpu", "baseline", "single-gpu-keras", "lint.no-prefetch", "no-prefetch", "nccl_system_error"]
)
def test_every_kind_of_name_is_explained(name: str) -> None:
    done = kdoctor_here("explain", name)
    assert done.returncode == 0
    assert name.removeprefix("lint.") in done.stdout.splitlines()[0]


def test_every_id_on_a_screen_is_explained() -> None:
    known = Known()
    catalog, matrix = known.catalog, known.matrix
    ids = {*known.failures.by_id, *(row.id for row in matrix.known_bad), *catalog.checks, *catalog.scenarios}
    ids.update(mode for check in catalog.checks.values() for mode in check.failure_modes)
    for python, kind in itertools.product(("3.11", "3.14"), matrix.gpus):
        gpu = NamedGpu(name=kind.names[0], capability=kind.capability)
        for each in (matrix, matrix.of("jax")):
            verdicts = compatible(each, Machine(driver="535.54.03", gpus=(gpu,), python=python))
            ids.update(reason.failure for verdict in verdicts for reason in verdict.reasons if reason.failure)
    assert {"h5py_pin_python314", "tf214_tensorrt_pin", "ptx_newer_than_driver"} <= ids
    texts = {name: explain_name(name, known) for name in sorted(ids.union(known.names))}
    assert [name for name in sorted(ids) if not texts[name]] == []
    # Pages of the repository are not where kdoctor is installed.
    assert [name for name, text in texts.items() if re.search(r"\bdocs/[\w-]+\.md", text)] == []
    assert [name for name in known.matrix.features if not name.islower()] == []


def test_names_are_unique_over_all_kinds() -> None:
    catalog = load_catalog()
    kinds = [set(catalog.checks) | set(catalog.scenarios), set(catalog.families), set(catalog.checklists), set(RULES)]
    kinds.append(set(load_failures().by_id))
    assert sum(map(len, kinds)) == len(set[str]().union(*kinds))


def test_check_shows_what_each_release_does_with_its_features() -> None:
    shown = kdoctor_here("explain", "clipping").stdout
    assert shown.startswith(kdoctor_here("explain", "smoke.clipping").stdout)
    measured = shown.partition("\nMeasured\n")[2].partition("\nSource\n")[0]
    assert "keras 3.2.1 to " in measured
    assert "tf_keras" in measured


def test_feature_is_explained_by_its_case() -> None:
    done = kdoctor_here("explain", "clipnorm")
    assert (done.returncode, "smoke.clipping" in done.stdout, "keras 3.2.1 to " in done.stdout) == (0, True, True)
    assert "clipnorm" in kdoctor_here("explain", "clipnrm").stderr


def test_release_of_keras_is_explained_with_its_defects_first() -> None:
    known = Known()
    for row in known.matrix.keras_releases:
        shown = " ".join(explain_name(f"{row.package} {row.release}", known).split())
        wrong = [one for one in defects(known.matrix.keras_features, row.package, row.release) if one.result == "wrong"]
        listed = by_scenario(titles(known.matrix, [one.feature for one in wrong]))
        assert ("Wrong without an error" in shown, listed in shown.partition(" Right ")[0]) == (bool(wrong), True)
    assert "was not measured" in explain_name("keras==99.0", known)
    assert not explain_name("keras 3.x", known)


def test_a_feature_is_known_by_every_name_that_a_report_gives_it() -> None:
    known = Known()
    unknown = [row.title for row in known.matrix.features.values() if not explain_name(row.title, known)]
    assert (len(known.matrix.features) > 100, unknown) == (True, [])
    assert "first-batch-uneven" in explain_name("first batch uneven", known)
    assert kdoctor_here("explain", "multi worker (fit)").stdout == explain_name("multi-worker/fit", known)
