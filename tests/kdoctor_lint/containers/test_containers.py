"""Dockerfiles and compose files."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdoctor.errors import UsageError
from kdoctor_lint.containers.dockerfile import installed, instructions, read_stages
from kdoctor_lint.containers.judge import is_container_file
from kdoctor_lint.engine import lint
from kdoctor_lint.model import Rule
from kdoctor_lint.registry import RULES
from kdoctor_lint.rules import _containers

KD6 = [rule for rule in RULES.values() if rule.code.startswith("KD6")]
SWARM = "deploy: {resources: {reservations: {generic_resources: [{discrete_resource_spec: {kind: NVIDIA-GPU}}]}}}"
GPUS = "deploy: {resources: {reservations: {devices: [{capabilities: [gpu]}]}}}"


def found(folder: Path, name: str, text: str) -> list[tuple[str, int]]:
    """Code and line of each finding."""
    (folder / name).write_text(text, encoding="utf-8")
    return [(finding.rule.code, finding.spot.line) for finding in lint([str(folder / name)]).findings]


def file_of(text: str) -> str:
    return "Dockerfile" if text.startswith("FROM") else "compose.yaml"


@pytest.mark.parametrize("rule", KD6, ids=lambda rule: rule.id)
def test_examples_of_the_rules_are_right(tmp_path: Path, rule: Rule) -> None:
    assert rule.code in [code for code, _ in found(tmp_path, file_of(rule.bad), rule.bad)]
    assert found(tmp_path, file_of(rule.good), rule.good) == []


@pytest.mark.parametrize(
    ("image", "packages", "lines"),
    [
        ("python:3.12-slim", "'tensorflow[and-cuda]==2.15.1'", [2]),
        ("python:3.11-slim", "'tensorflow[and-cuda]==2.15.1'", []),
        ("docker.example/library/python:3.12", "tensorflow==2.15.1", [2]),
        ("python:3.12", "'tensorflow>=2.15'", []),  # pip chooses
        ("python:3.12", "'tensorflow<2.16,>=2.15'", []),
        ("python:3.12", "tensorflow==2.15.*", [2]),
        ("python:3.11", "tensorflow==2.15.*", []),
        ("python:3.12", "tensorflow~=2.15.0", [2]),
        ("python:3.12", "tensorflow~=2.15", []),  # 2.21, too
        ("python:3.12", "tensorflow===2.15.1", [2]),
        ("python:3.12", "tensorflow==2.*", []),
        ("python:3.12", "\"tensorflow==2.15.1; python_version<'3.13'\"", [2]),
        ("python:3.12", "\"tensorflow==2.15.1; python_version<'3.12'\"", []),
        ("ubuntu:24.04", "\"tensorflow==2.15.1; python_version<'3.13'\"", []),
        ("python:3.12", "'tensorflow==2.15.1 ; sys_platform == \"darwin\"'", []),
        ("nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04", "tensorflow==2.19.*", [2, 2]),
        ("ubuntu:24.04", "tensorflow==2.15.1", []),  # its Python is not known
        ("nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04", "tensorflow==2.19.0", [2, 2]),
        ("nvidia/cuda:12.5.1-cudnn-devel-ubuntu22.04", "tensorflow==2.19.0", []),
        ("nvidia/cuda:12.9.0-runtime-ubuntu22.04", "tensorflow==2.19.0", []),
        ("nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04", "'tensorflow[and-cuda]==2.19.0'", []),
        ("nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04", "tensorflow-cpu==2.19.0", []),
    ],
)
def test_versions_of_image_and_packages(tmp_path: Path, image: str, packages: str, lines: list[int]) -> None:
    text = f"FROM {image}\nRUN pip install {packages}\n"
    assert found(tmp_path, "Dockerfile", text) == [("KD601", line) for line in lines]


def test_known_bad_combination_of_the_matrix(tmp_path: Path) -> None:
    text = "FROM python:3.11\nRUN pip install tensorflow==2.19.0\nRUN uv pip install keras==3.6.0\n"
    assert set(found(tmp_path, "Dockerfile", text)) == {("KD601", 3)}
    assert found(tmp_path, "Dockerfile", text.replace("3.6.0", "3.12.0")) == []


def test_stages_arguments_and_continued_lines(tmp_path: Path) -> None:
    text = """# syntax=docker/dockerfile:1
ARG PY=3.12
FROM --platform=linux/amd64 python:${PY}-slim AS base
# a comment
RUN apt-get update \\
    # within a command
    && pip install --no-cache-dir -r requirements.txt \\
       tensorflow==${TF:-2.15.1}
FROM base AS final
"""
    assert found(tmp_path, "Dockerfile", text) == [("KD601", 5)]
    stages = read_stages(text)
    assert [stage.image for stage in stages] == ["python:3.12-slim"] * 2
    assert [name for _, name, _ in instructions(text)] == ["ARG", "FROM", "RUN", "FROM"]


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("pip install a==1 b", ["a", "b"]),
        ("python -m pip3 install --target /x a", []),
        ("python -m pip install --target /x a", ["a"]),
        ("/opt/venv/bin/pip install -q 'a[b]==1' && pip install c", ["a", "c"]),
        ("uv pip install --python /opt a", ["a"]),
        ("apt-get install -y python3", []),
        ("pip install ./here https://example.com/x.whl", []),
        ("pip install 'unbalanced", []),
        ("pip install a 'unbalanced", ["a"]),
        ("bash -c 'pip install a && pip install b' && pip install c", ["a", "b", "c"]),
        ("/bin/sh -lc \"bash -ec 'pip install a'\"", ["a"]),
        ("bash -c", []),
        ("pip install a # and b", ["a"]),
        ("# don't\npip install git+https://example.com/x#egg=x a", ["a"]),
        ("pip install \"a==1; python_version<'3.13'\" || pip install b", ["a", "b"]),
        ("(pip install a);pip install b&", ["a", "b"]),
        ("pip install a==$(cat version) b", []),
    ],
)
def test_requirements_of_pip(command: str, names: list[str]) -> None:
    if "pip3" in command:
        names = ["a"]
    assert [one.name for one in installed(command)] == names


OLD = "tensorflow==2.15.1"  # has no wheels for Python 3.12


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("ENV TF 2.15.1\nRUN pip install tensorflow==$TF\n", [3]),
        ("ENV TF='2.15.1' OTHER=x\nRUN pip install tensorflow==${TF}\n", [3]),
        (f'RUN ["pip", "install", "{OLD}"]\n', [2]),
        (f'RUN ["/bin/bash", "-c", "true && pip install {OLD}"]\n', [2]),
        (f'RUN ["pip", "install", "{OLD}"\n', []),
        (f"RUN --mount=type=cache,target=/root/.cache --network=default pip install {OLD}\n", [2]),
        (f"RUN --mount=type=bind,source=r.txt,target=r.txt pip install -r r.txt {OLD}\n", [2]),
        (f"RUN <<EOF\nset -e\npip install \\\n  {OLD}\nEOF\n", [2]),
        (f"RUN --mount=type=cache,target=/x <<-'EOF' bash -e\n\tpip install {OLD}\n\tEOF\n", [2]),
        (f"RUN bash <<EOF\npip install {OLD}\nEOF\nRUN pip install {OLD}\n", [5]),  # the last one counts
        (f"RUN <<EOF\n#!/usr/bin/env bash\npip install {OLD}\nEOF\n", [2]),
        (f"RUN <<EOF\n#!/usr/bin/env python3\npip install {OLD}\nEOF\n", []),
        (f"RUN cat <<EOF > /x\npip install {OLD}\nEOF\n", []),
        (f"COPY <<EOF /train.py\nfrom x import y\npip install {OLD}\nEOF\nRUN pip install numpy\n", []),
        (f"COPY <<A <<B /x/\na\nA\nb\nB\nRUN pip install {OLD}\n", [7]),
        (f"RUN cat <<< text && pip install {OLD}\n", [2]),
        (f"RUN <<EOF\npip install {OLD}\n", [2]),
    ],
)
def test_forms_of_instructions(tmp_path: Path, text: str, lines: list[int]) -> None:
    assert found(tmp_path, "Dockerfile", f"FROM python:3.12-slim\n{text}") == [("KD601", line) for line in lines]


def test_document_in_a_dockerfile_is_not_a_stage() -> None:
    text = "FROM python:3.12\nCOPY <<EOF /train.py\nfrom tensorflow import keras\nEOF\nFROM scratch\n"
    assert [stage.image for stage in read_stages(text)] == ["python:3.12", "scratch"]


@pytest.mark.parametrize(
    ("image", "packages", "lines"),
    [
        ("tensorflow/tensorflow:2.16.1-gpu", "numpy==2.0.0", [3]),
        ("registry.example:5000/tensorflow/tensorflow:2.16.1@sha256:00", "numpy==2.0.0", [3]),
        ("tensorflow/tensorflow:2.16.1-gpu", "tensorflow==2.19.0 numpy==2.0.0", []),
        ("tensorflow/tensorflow:2.19.0-gpu", "numpy==2.0.0", []),
        ("tensorflow/tensorflow:latest-gpu", "numpy==2.0.0", []),
        ("nvcr.io/nvidia/tensorflow:24.03-tf2-py3", "numpy==2.0.0", []),
        ("tensorflow/tensorflow:2.15.0-gpu", "requests==2.32.0", []),  # a defect of pip's [and-cuda] only
    ],
)
def test_tensorflow_of_the_base_image_counts(tmp_path: Path, image: str, packages: str, lines: list[int]) -> None:
    text = f"ARG IMAGE={image}\nFROM ${{IMAGE}} AS train\nRUN pip install {packages}\n"
    assert found(tmp_path, "Dockerfile", text) == [("KD601", line) for line in lines]


@pytest.mark.parametrize(
    ("settings", "codes"),
    [
        (f"image: x\n    {GPUS}", ["KD603", "KD604"]),
        ("image: x\n    gpus: all\n    ipc: host\n    ulimits: {memlock: {soft: -1, hard: -1}}", []),
        ("image: x\n    runtime: nvidia\n    shm_size: 512m\n    ulimits: {memlock: -1}", ["KD603"]),
        ("image: x\n    gpus: all\n    shm_size: 2gb\n    ulimits: {memlock: 65536}", ["KD604"]),
        ("image: x\n    gpus: all\n    shm_size: ${SHM}\n    ulimits: {memlock: -1}", []),
        ("image: x\n    gpus: all\n    shm_size: ${SHM:-64m}\n    ulimits: {memlock: -1}", ["KD603"]),
        ("image: x\n    gpus: all\n    shm_size: ${SHM-8}gb\n    ulimits: {memlock: -1}", []),
        ("image: nvidia/cuda:12.5.1-base-ubuntu22.04", ["KD602"]),
        ("image: postgres:16", []),
        ("build: .", []),
        ("image: nvcr.io/nvidia/tensorflow:24.03-tf2-py3", ["KD602"]),
        ("image: nvidia/cuda:12.5.1-base\n    devices: [nvidia.com/gpu=all]", ["KD603", "KD604"]),
        ("image: nvidia/cuda:12.5.1-base\n    devices: [/dev/nvidia0:/dev/nvidia0]", ["KD603", "KD604"]),
        ("image: nvidia/cuda:12.5.1-base\n    environment: {NVIDIA_VISIBLE_DEVICES: all}", ["KD603", "KD604"]),
        ("image: nvidia/cuda:12.5.1-base\n    environment: [NVIDIA_VISIBLE_DEVICES=none]", ["KD602"]),
        (f"image: x\n    {SWARM}", ["KD603", "KD604"]),
        ("image: x\n    gpus: [{driver: nvidia, count: 2}]", ["KD603", "KD604"]),
        ("image: x\n    gpus: [{driver: nvidia, count: 1}]", ["KD604"]),
        (f"image: x\n    {GPUS.replace('[gpu]', '[gpu], count: 1')}", ["KD604"]),
        (f"image: x\n    {GPUS.replace('[gpu]', '[gpu, utility], device_ids: [a]')}", ["KD604"]),
        (f"image: x\n    {GPUS.replace('[gpu]', '[gpu], device_ids: [a, b]')}", ["KD603", "KD604"]),
        (f"image: x\n    {GPUS.replace('[gpu]', '[tpu]')}", []),
        ("image: x\n    gpus: all\n    shm_size: 8GiB\n    ulimits: {memlock: '-1'}", []),
        ("image: x\n    gpus: all\n    shm_size: 2147483648\n    privileged: true", []),
        ("image: x\n    gpus: all\n    shm_size: 1 TB\n    cap_add: [IPC_LOCK]", []),
        ("image: x\n    gpus: all\n    shm_size: 1.5 G\n    cap_add: [SYS_ADMIN]", ["KD604"]),
        ("image: x\n    gpus: all\n    shm_size: 65536k\n    cap_add: [ALL]", ["KD603"]),
        (
            "image: x\n    gpus: all\n    ipc: shareable\n    ulimits: {memlock: {soft: -1, hard: 8}}",
            ["KD603", "KD604"],
        ),
        ("image: x\n    gpus: all\n    ipc: service:other\n    privileged: true", []),
        ("image: x\n    gpus: all\n    tmpfs: /dev/shm:size=8g\n    privileged: true", []),
        ("image: x\n    gpus: all\n    volumes: ['/dev/shm:/dev/shm']\n    privileged: true", []),
        ("image: x\n    gpus: all\n    volumes: [{type: tmpfs, target: /dev/shm}]\n    privileged: true", []),
        ("image: x\n    gpus: all\n    volumes: [./data:/data]\n    privileged: true", ["KD603"]),
        ("image: nvidia/cuda:12.5.1-base\n    gpus: !reset null", ["KD602"]),
        ("image: x\n    gpus: !override [{count: 2}]\n    privileged: true", ["KD603"]),
        ("gpus: all", []),  # an override: the other file may say the rest
        ("gpus: all\n    shm_size: 64m", ["KD603"]),
    ],
)
def test_services(tmp_path: Path, settings: str, codes: list[str]) -> None:
    text = f"name: job\nservices:\n  train:\n    {settings}\n"
    assert found(tmp_path, "compose.yaml", text) == [(code, 3) for code in codes]


BASE = "image: nvidia/cuda:12.5.1-base\n    gpus: all\n    shm_size: 8g\n    ulimits: {memlock: -1}"


@pytest.mark.parametrize(
    ("others", "own", "codes"),
    [
        (f"base:\n    {BASE}", "extends: base", []),
        (f"base:\n    {BASE}", "extends: {service: base}\n    shm_size: 64m", ["KD603"]),
        (f"base:\n    {BASE}\n  middle:\n    extends: base", "extends: {service: middle}\n    command: x", []),
        (
            "base:\n    image: x\n    ulimits: {nofile: 4096}\n    deploy: {resources: {limits: {cpus: 4}}}",
            f"extends: base\n    {GPUS}\n    ulimits: {{memlock: -1}}",
            ["KD603"],
        ),
        ("base: {image: x}", "image: x\n    gpus: all\n    extends: {file: common.yaml, service: base}", []),
        ("base: {image: x}", "image: nvidia/cuda:12.5.1-base\n    extends: {service: unknown}", []),
        ("base: {image: x}", "gpus: all\n    extends: train", []),  # of itself, which compose refuses
    ],
)
def test_services_that_extend_others(tmp_path: Path, others: str, own: str, codes: list[str]) -> None:
    text = f"services:\n  train:\n    {own}\n  {others}\n"
    assert found(tmp_path, "compose.yaml", text) == [(code, 2) for code in codes]


def test_dockerfile_in_a_service_is_judged_at_its_lines(tmp_path: Path) -> None:
    text = """services:
  train:
    build:
      dockerfile_inline: |
        # of the team
        FROM python:3.13-slim
        RUN pip install tensorflow==2.15.1
  right:
    build: {dockerfile_inline: "FROM python:3.11-slim"}
"""
    assert found(tmp_path, "compose.yaml", text) == [("KD601", 7)]


def test_anchors_and_merged_keys_are_read(tmp_path: Path) -> None:
    text = f"""x-gpu: &gpu
  {GPUS}
  shm_size: 8gb
  ulimits: &limits {{memlock: {{soft: -1, hard: -1}}}}
services:
  one: {{<<: *gpu, image: x}}
  two:
    <<: [*gpu]
    image: x
    shm_size: 64m
    ulimits: *limits
"""
    assert found(tmp_path, "compose.yaml", text) == [("KD603", 7)]


@pytest.mark.parametrize("text", ["", "services:", "services: []", "- a", "services: {a: null, b: 3}", "1"])
def test_unusual_compose_files_have_no_findings(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, "compose.yaml", text) == []


@pytest.mark.parametrize(
    "image", ["nvidia/cuda:{}.2-cudnn8", "nvidia/cuda:12.{}-cudnn8", "python:3.{}", "x/python3.{}"]
)
def test_number_of_thousands_of_digits_is_not_a_version(tmp_path: Path, image: str) -> None:
    text = f"FROM {image.format('1' * 5000)}\nRUN pip install tensorflow==2.19.0\n"
    assert found(tmp_path, "Dockerfile", text) == []


@pytest.mark.parametrize("image", ["python:3.1\u0663-slim", "nvidia/cuda:12.\u0662-cudnn8"])
def test_digits_of_other_scripts_are_not_a_version(tmp_path: Path, image: str) -> None:
    assert found(tmp_path, "Dockerfile", f"FROM {image}\nRUN pip install tensorflow==2.19.0\n") == []


def test_file_that_is_not_yaml_or_text_is_a_finding(tmp_path: Path) -> None:
    assert found(tmp_path, "compose.yaml", "services: {\n") == [("KD901", 2)]
    assert found(tmp_path, "compose.yaml", 'services: "\\U00110000"\n') == [("KD901", 1)]
    (tmp_path / "Dockerfile").write_bytes(b"\xff\xfe\x00")
    assert [finding.rule.code for finding in lint([str(tmp_path / "Dockerfile")]).findings] == ["KD902"]


def test_folders_are_searched_by_name(tmp_path: Path) -> None:
    for name in (
        "Dockerfile",
        "gpu.Dockerfile",
        "Dockerfile.gpu",
        "Containerfile",
        "docker-compose.gpu.yml",
        "Dockerfile-cuda",
    ):
        assert is_container_file(name)
        (tmp_path / name).write_text("FROM scratch\n" if "ompose" not in name else "services:\n", encoding="utf-8")
    for name in ("compose-gpu.yaml", "docker-compose.gpu.prod.yml"):
        assert is_container_file(name)
    others = ("dockerfiles.md", "compose.py", "values.yaml", "decompose.yaml", "dockerfile.py", "Dockerfile.md")
    for name in (*others, "test_dockerfile.py", "dockerfile-parser.py", "gpu.Dockerfile.dockerignore"):
        assert not is_container_file(name)
    assert len(lint([str(tmp_path)]).files) == 6
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError):
        lint([str(tmp_path / "empty")])


def test_rules_can_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "Dockerfile"
    path.write_text(_containers.CONTAINER_VERSIONS.bad, encoding="utf-8")
    kept = {name: rule for name, rule in RULES.items() if rule.code != "KD601"}
    assert lint([str(path)], kept).findings == ()
