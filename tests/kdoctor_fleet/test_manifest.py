import json
import shlex
from typing import Any

import pytest
import yaml

from helpers.cases import cases
from helpers.command import KDOCTOR, captured, environ
from helpers.kdoctor_fleet.fleets import asked, names_of
from kdoctor.errors import UsageError
from kdoctor_fleet.exclusion import TAINT

OPTIONS = ("--", "--no-smoke", "--checklist", "my checklist.yaml", "--skip", "$(reboot)")


def printed(*arguments: str) -> str:
    return asked("manifest", "--image", "registry.example/training:1", *arguments)


def manifest(*arguments: str) -> Any:
    return yaml.safe_load(printed(*arguments))


def pod_of(document: Any) -> Any:
    spec = document["spec"]
    return (spec["jobTemplate"]["spec"] if "jobTemplate" in spec else spec)["template"]["spec"]


@pytest.mark.parametrize("kind", ["job", "cronjob", "daemonset"])
def test_pods_have_few_rights_and_reach_tainted_nodes(kind: str) -> None:
    pod = pod_of(manifest("--kind", kind, "--selector", "pool=gpu"))
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {item["key"] for item in pod["tolerations"]} == {TAINT, "nvidia.com/gpu"}
    assert pod["nodeSelector"] == {"pool": "gpu"}
    assert {mount["name"] for mount in container["volumeMounts"]} == {item["name"] for item in pod["volumes"]}
    variables = {item["name"]: item for item in container["env"]}
    assert variables["NODE_NAME"]["valueFrom"]["fieldRef"]["fieldPath"] == "spec.nodeName"


def test_job_has_a_pod_on_each_of_so_many_nodes() -> None:
    document = manifest("--nodes", "4", "--gpus", "2")
    spec = document["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 4, 4)
    pod = pod_of(document)
    (term,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    assert pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 2
    assert pod["activeDeadlineSeconds"] < spec["activeDeadlineSeconds"]


@cases(60, 119, 120, 1800)
def test_kdoctor_ends_before_its_pod_is_ended(limit_s: int) -> None:
    pod = pod_of(manifest("--node-timeout", str(limit_s)))
    words = shlex.split(pod["containers"][0]["command"][2])
    assert limit_s // 2 <= int(words[words.index("--timeout") + 1]) < pod["activeDeadlineSeconds"] == limit_s


def test_cronjob_has_a_schedule_and_daemonset_takes_no_gpu() -> None:
    assert manifest("--kind", "cronjob", "--schedule", "5 4 * * 0")["spec"]["schedule"] == "5 4 * * 0"
    pod = pod_of(manifest("--kind", "daemonset", "--every", "600", "--runtime-class", "nvidia"))
    assert "nvidia.com/gpu" not in pod["containers"][0]["resources"]["limits"]
    assert pod["runtimeClassName"] == "nvidia"
    assert "--no-smoke" in pod["containers"][0]["command"][2]
    assert "sleep 600" in pod["containers"][0]["command"][2]


def test_options_are_words_of_the_shell() -> None:
    command = pod_of(manifest("--kdoctor", "/opt/kdoctor/bin/kdoctor", *OPTIONS))["containers"][0]["command"]
    assert command[:2] == ["/bin/sh", "-c"]
    words = shlex.split(command[2])
    assert words[0] == "/opt/kdoctor/bin/kdoctor"
    end = words.index("||")
    assert words[end - len(OPTIONS) + 1 : end] == [*OPTIONS[1:]]
    assert words[end + 1] == "echo"
    assert "'$(reboot)'" in command[2]
    (init,) = manifest("--kind", "init-container", *OPTIONS)["initContainers"]
    assert init["command"][-5:] == list(OPTIONS[1:])


def test_command_of_the_pods_writes_a_report_that_merge_reads() -> None:
    words = " ".join(KDOCTOR)
    options = ("--", "--no-smoke", "--checklist", "cpu-smoke", "--select", "versions.python-supported")
    command = pod_of(manifest("--kdoctor", words, *options))["containers"][0]["command"]
    logs = ""
    for name in names_of(1):
        done = captured(command, check=True, env=environ(NODE_NAME=name))
        logs += f"{done.stderr}{done.stdout}"
    (node,) = json.loads(asked("merge", "-", "-f", "json", "--min-healthy", "1", stdin=logs, code=3))["nodes"]
    assert (node["name"], node["state"]) == (names_of(1)[0], "unknown")  # one check was selected


def test_text_of_the_command_line_stays_within_its_value() -> None:
    document = manifest("--namespace", "ml", "--schedule", "x\nkind: Secret", "--kind", "cronjob")
    assert document["kind"] == "CronJob"
    assert document["metadata"]["namespace"] == "ml"
    assert document["spec"]["schedule"] == "x\nkind: Secret"


@cases(
    ["--kind", "pod"],
    ["--name", "A"],
    ["--name", "x" * 60],
    ["--namespace", "a\nb"],
    ["--selector", "pool"],
    ["--selector", "a b=c"],
    ["--image", "a\nb"],
    ["--kdoctor", ""],
)
def test_wrong_options_are_usage_errors(arguments: list[str]) -> None:
    with pytest.raises(UsageError):
        printed(*arguments)
