"""Questions that people ask, answered from primary sources in ``tests/matrix/questions.yaml``."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from kdoctor.matrix.advice import advise
from kdoctor.matrix.compatibility import compatible, needed_driver
from kdoctor.matrix.gpus import GpuNameError, find_gpu
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.machine import Asked, Found, describe
from kdoctor.matrix.model import VersionMatrix
from kdoctor.matrix.render import render
from kdoctor.matrix.requirements import find_release
from kdoctor.matrix.view import View, python_range
from kdoctor.matrix.ways import way_out
from kdoctor.text.canvas import SCREEN

MATRIX = load_matrix(environ={})
QUESTIONS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[2] / "matrix/questions.yaml").read_text(encoding="utf-8")
)
GPUS: dict[str, list[str]] = yaml.safe_load(
    (Path(__file__).parents[2] / "matrix/gpus.yaml").read_text(encoding="utf-8")
)
ELSEWHERE = {
    "index": "the wheels on the package index",
    "makers": "product names of other makers of GPUs",
    "cuda-dnn": "openxla/xla xla/stream_executor/cuda/cuda_dnn.cc: the loaded cuDNN may not be older than the build's",
}


def options(question: dict[str, Any]) -> dict[str, list[str]]:
    words = shlex.split(question["ask"])
    found: dict[str, list[str]] = {}
    for name, value in zip(words[::2], words[1::2], strict=True):
        found.setdefault(name.removeprefix("--"), []).append(value)
    return found


def found_for(matrix: VersionMatrix, asked: dict[str, list[str]], root: Path) -> Found:
    single = {name: values[0] for name, values in asked.items() if name != "gpu"}
    given = Asked(gpus=tuple(asked.get("gpu", ())), **single)
    return describe(matrix, given, {}, root=root)


def refusal(name: str) -> str:
    """What the error says if the name of a GPU is refused."""
    with pytest.raises(GpuNameError) as caught:
        find_gpu(MATRIX, name)
    return str(caught.value)


def answers(question: dict[str, Any], root: Path) -> dict[str, Any]:
    """What the program says to each part of the answer that the question has."""
    asked = options(question)
    if "refused" in question:
        said = refusal(asked["gpu"][0])
        return {"refused": [word for word in question["refused"] if word in said]}
    if "capability" in question:
        return {"capability": find_gpu(MATRIX, asked["gpu"][0]).capability}
    if "tensorflow" in asked:
        release = find_release(MATRIX, asked["tensorflow"][0])
        gpus = [find_gpu(MATRIX, name) for name in asked.get("gpu", ())]
        return {
            "cuda": release.cuda,
            "cudnn": release.cudnn,
            "python": python_range(release),
            "driver": needed_driver(MATRIX, release, gpus),
        }
    matrix = MATRIX.of(asked.pop("framework", ["tensorflow"])[0])
    described = found_for(matrix, asked, root)
    verdicts = compatible(matrix, described.machine)
    view = View(matrix=matrix, machine=described.machine, facts=described.facts, verdicts=verdicts)
    screen = render(view, "terminal")
    assert sum(max(1, -(-len(line) // 80)) for line in screen.splitlines()) <= SCREEN
    document = json.loads(render(view, "json"))["advice"]
    assert [item["text"] for item in document] == [item.text for item in advise(view)]
    page = render(view, "markdown").replace("\\", "")
    for item in advise(view):
        texts = (item.text, *item.reasons, *item.commands, *item.notes)
        assert [text for text in texts if text.replace("\\", "") not in page] == []
    found, near, with_wheels = view.best, view.nearest, view.with_wheels
    way = way_out(matrix, described.machine, verdicts)
    failing = {verdict.release.version for verdict in verdicts if verdict.outcome == "does-not-run"}
    wanted = question.get("command")
    return {
        "best": found.release.version if found else None,
        "command": wanted if found and wanted and wanted in "\n".join(found.commands) else None,
        "package": way.package if way else None,
        "needed": way.driver if way else None,
        "on_cpu": question.get("on_cpu") if (question.get("on_cpu") or "") in "".join(view.on_cpu) else view.on_cpu,
        "with_wheels": with_wheels.release.version if with_wheels else None,
        "undecided": near.release.version if near and near.outcome == "unknown" else None,
        "says": [text for text in question.get("says", ()) if text in " ".join(screen.split())],
        "not_running": question.get("not_running") if question.get("not_running") in failing else None,
    }


@pytest.mark.parametrize("capability", GPUS)
def test_every_gpu_of_the_published_tables_is_known(capability: str) -> None:
    for name in GPUS[capability]:
        if " or " not in capability:
            assert find_gpu(MATRIX, name).capability == capability, name
        else:
            said = refusal(name)
            assert all(one in said for one in capability.split(" or ")), said


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["ask"])
def test_answer_is_right(question: dict[str, Any], tmp_path: Path) -> None:
    found = answers(question, tmp_path)
    for part in set(question) - {"ask", "source"}:
        assert found[part] == question[part], part


def test_there_are_enough_questions_and_each_has_a_source() -> None:
    assert len(QUESTIONS) >= 150
    known = {*MATRIX.sources, *ELSEWHERE}
    for question in QUESTIONS:
        stated = question["source"] if isinstance(question["source"], list) else [question["source"]]
        assert all(source in known or "#" in source for source in stated), question
    asked = [str({**question, "source": None}) for question in QUESTIONS]
    assert len(set(asked)) == len(asked)
