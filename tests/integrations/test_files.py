"""The integration files have the structure their systems expect, and their commands run."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from junitparser import JUnitXml

from helpers.command import captured, environ, make_target
from helpers.integrations import FOLDER, KDOCTOR, ROOT, read

PAGE = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")


def test_page_links_every_file_and_every_link_exists() -> None:
    named = {(ROOT / "docs" / link).resolve() for link in re.findall(r"\]\(([^)]+)\)", PAGE)}
    assert all(path.is_file() for path in named)
    assert named >= {path for path in FOLDER.iterdir() if path.is_file()}


ACTION = read(ROOT / "action.yml")
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}


def test_action_has_the_required_keys() -> None:
    assert {"name", "description", "inputs", "outputs", "runs"} <= set(ACTION)
    assert ACTION["runs"]["using"] == "composite"
    for value in ACTION["inputs"].values():
        assert {"description", "default"} <= set(value)
    for step in ACTION["runs"]["steps"]:
        # GitHub requires a shell for every command of a composite action.
        assert ("uses" in step) != ({"run", "shell"} <= set(step))


def test_action_uses_only_existing_inputs_and_steps() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"inputs\.([a-z-]+)", text)) == set(ACTION["inputs"])
    steps = {step["id"] for step in ACTION["runs"]["steps"] if "id" in step}
    assert set(re.findall(r"steps\.([a-z-]+)\.", text)) <= steps


def test_commands_contain_no_expressions() -> None:
    """The name of a branch could inject commands."""
    for path in (ROOT / "action.yml", ROOT / ".github" / "workflows" / "kdoctor.yml"):
        document = read(path)
        steps = document["runs"]["steps"] if "runs" in document else document["jobs"]["check"]["steps"]
        assert not [step["run"] for step in steps if "${{" in step.get("run", "")]


@pytest.mark.parametrize("name", [name for name, step in STEPS.items() if "run" in step])
def test_action_commands_are_valid_bash(name: str) -> None:
    subprocess.run(["bash", "-n", "-c", STEPS[name]["run"]], check=True)


def test_reusable_workflow_passes_its_inputs_to_the_action() -> None:
    path = ROOT / ".github" / "workflows" / "kdoctor.yml"
    workflow = read(path)
    called = workflow[True]["workflow_call"]["inputs"]  # YAML 1.1 reads the key "on" as true
    assert all("type" in value for value in called.values())
    assert set(re.findall(r"inputs\.([a-z-]+)", path.read_text(encoding="utf-8"))) == set(called)
    assert set(workflow["jobs"]["check"]["steps"][-1]["with"]) <= set(ACTION["inputs"])


def test_pre_commit_hooks_match_checklists_and_run(tmp_path: Path) -> None:
    hooks = {hook["id"]: hook for hook in read(ROOT / ".pre-commit-hooks.yaml")}
    assert all({"id", "name", "entry", "language"} <= set(hook) for hook in hooks.values())
    checklist = hooks["kdoctor-checklist"]
    for path, wanted in {
        "checklists/gpu.yaml": True, "ci/kdoctor-node.yml": True, "checklists/gpu.lock.yaml": False,
        ".github/workflows/kdoctor.yml": False, "mkdocs.yml": False,
    }.items():  # fmt: skip
        assert bool(re.search(checklist["files"], path) and not re.search(checklist["exclude"], path)) == wanted, path
    (tmp_path / "train.py").write_text("print('no Keras')\n")
    shipped = ROOT / "checklists" / "kdoctor_checklists" / "cpu-smoke.yaml"
    for hook, file in ((checklist, shipped), (hooks["kdoctor-lint"], tmp_path / "train.py")):
        command = [KDOCTOR, *hook["entry"].split()[1:], file]
        assert subprocess.run(command, check=False, capture_output=True, env=environ()).returncode == 0


@pytest.mark.parametrize(("broken", "code"), [(False, 0), (True, 1)])
def test_gitlab_template_writes_junit_report(tmp_path: Path, *, broken: bool, code: int) -> None:
    job = read(FOLDER / "gitlab.yml")[".kdoctor"]
    assert job["artifacts"]["reports"] == {"junit": "kdoctor.xml"}
    assert job["artifacts"]["when"] == "always"
    (tmp_path / ".kdoctor" / "bin").mkdir(parents=True)
    (tmp_path / ".kdoctor" / "bin" / "kdoctor").symlink_to(KDOCTOR)
    target = make_target(tmp_path / "job", tensorflow=None if broken else "")
    narrowed = "--checklist cpu-smoke --no-smoke --select versions.tensorflow-installed"
    command = job["script"][0].replace('--checklist "$KDOCTOR_CHECKLIST"', narrowed)
    given = environ(**{**job["variables"], "KDOCTOR_PYTHON": str(target), "CI_PROJECT_DIR": str(tmp_path)})
    assert subprocess.run(["bash", "-ec", command], check=False, env=given, cwd=tmp_path).returncode == code
    found = JUnitXml.fromstring((tmp_path / "kdoctor.xml").read_bytes())
    assert (found.failures, found.errors) == (code, 0)
    assert (tmp_path / "kdoctor.html").is_file()


def test_gitlab_template_examines_the_python_of_the_image_by_default(tmp_path: Path) -> None:
    """kdoctor's interpreter has no TensorFlow."""
    job = read(FOLDER / "gitlab.yml")[".kdoctor"]
    command = job["script"][0].replace('"$CI_PROJECT_DIR/.kdoctor/bin/kdoctor"', "printf '%s\\n'")
    target = make_target(tmp_path / "job")
    given = environ(**{**job["variables"], "PATH": f"{target}/bin:{os.environ['PATH']}"})
    done = captured(["bash", "-ec", command], check=True, env=given)
    assert f"--python\n{target}/bin/python3\n" in done.stdout


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for name in ("kdoctor.service", "kdoctor.timer"):
        text = (FOLDER / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace("/opt/kdoctor/bin/kdoctor", str(KDOCTOR)))
    units = [str(tmp_path / name) for name in ("kdoctor.service", "kdoctor.timer")]
    done = captured(["systemd-analyze", "verify", *units])
    assert (done.returncode, [line for line in done.stderr.splitlines() if "kdoctor" in line]) == (0, [])


def test_options_in_service_and_pod_exist(tmp_path: Path) -> None:
    """An unknown option would exit with 2."""
    service = (FOLDER / "kdoctor.service").read_text(encoding="utf-8").replace("\\\n", " ")
    command = re.search(r"^ExecStart=\S+ (.*)$", service, re.MULTILINE)
    assert command
    target = make_target(tmp_path / "job", tensorflow="")
    narrowed = "cpu-smoke --no-smoke --select versions.tensorflow-installed"
    arguments = command[1].replace("multi-gpu-keras", narrowed).replace("/opt/job", str(target))
    arguments = arguments.replace("/var/lib/kdoctor/", "/dev/null#")
    arguments = re.sub(r"(prometheus|html)=\S+", r"\1=/dev/null", arguments).replace(" --output html=/dev/null", "")
    done = captured([KDOCTOR, *arguments.split()], env=environ())
    assert done.returncode == 0, done.stderr
    pod = read(FOLDER / "kubernetes-pod.yaml")["spec"]["initContainers"][0]["command"]
    options = [word.partition("=")[0] for word in pod[2:]]
    helped = captured([KDOCTOR, "check", "--help-all"], check=True, env=environ()).stdout
    assert all(option in helped for option in options)


@pytest.mark.parametrize("broken", [False, True])
def test_cron_mails_only_failed_runs(tmp_path: Path, *, broken: bool) -> None:
    target = make_target(tmp_path / "job", tensorflow=None if broken else "")
    line = (FOLDER / "crontab").read_text(encoding="utf-8").splitlines()[-1]
    assert "%" not in line, "cron treats % as the end of the line"
    command = (
        line.split(maxsplit=5)[5]
        .replace("/opt/kdoctor/bin/kdoctor", str(KDOCTOR))
        .replace("/opt/job", str(target))
        .replace("multi-gpu-keras", "cpu-smoke --no-smoke --select versions.tensorflow-installed")
    )
    done = captured(["/bin/sh", "-c", command], env=environ())
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("kdoctor NOT READY in ") if broken else done.stdout == ""


@pytest.mark.parametrize(("broken", "code"), [(False, 0), (True, 1)])
def test_prolog_drains_only_on_failure(tmp_path: Path, *, broken: bool, code: int) -> None:
    """Without Slurm, whose programs it does not call. test_slurm.py has the same test with a real Slurm."""
    target = make_target(tmp_path / "job", tensorflow=None if broken else "")
    given = environ(
        KDOCTOR=str(KDOCTOR), KDOCTOR_JOB_PYTHON=str(target), KDOCTOR_CHECKLIST="cpu-smoke",
        SLURMD_NODENAME="n1", SLURM_JOB_ID="7",
    )  # fmt: skip
    done = captured([FOLDER / "slurm-prolog.sh"], env=given)
    assert (done.returncode, done.stdout) == (code, "")


def test_prolog_without_kdoctor_starts_the_job(tmp_path: Path) -> None:
    given = environ(KDOCTOR=str(tmp_path / "none"))
    assert subprocess.run([FOLDER / "slurm-prolog.sh"], check=False, capture_output=True, env=given).returncode == 0


@pytest.mark.parametrize("home", [None, "/nonexistent", "/proc/none"])
def test_minimal_environment_is_enough(tmp_path: Path, home: str | None) -> None:
    """No terminal, no locale and no usable home, as under cron, in a prolog and in an init container."""
    target = make_target(tmp_path / "job", tensorflow="")
    options = ("--no-smoke", "--no-history", "--select", "versions.tensorflow-installed", "--python", target)
    done = subprocess.run(
        [KDOCTOR, "check", "--checklist", "cpu-smoke", *options], check=False, capture_output=True, cwd="/",
        stdin=subprocess.DEVNULL, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", **({"HOME": home} if home else {})},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode("ascii").splitlines()[-1].startswith("READY in ")


def test_deleted_working_directory_is_accepted(tmp_path: Path) -> None:
    command = 'mkdir gone; cd gone; rmdir ../gone; "$0" check --quiet --no-smoke --checklist cpu-smoke --python "$1"'
    shell = ["sh", "-c", command, str(KDOCTOR), str(make_target(tmp_path / "job"))]
    done = captured(shell, env=environ(), cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "(versions.tensorflow-installed)" in done.stdout


FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


@pytest.mark.parametrize("path", [path for path in FORMS if path.name != "config.yml"], ids=lambda path: path.stem)
def test_issue_forms_ask_for_a_snapshot(path: Path) -> None:
    form = read(path)
    assert form["name"]
    assert form["description"]
    assert form["labels"]
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len(set(ids))
    assert {field["type"] for field in form["body"]} <= {"textarea", "input", "dropdown", "checkboxes"}
    (asked,) = (field["attributes"]["description"] for field in form["body"] if field["id"] == "snapshot")
    assert "`kdoctor snapshot --output machine.json`" in asked


def test_there_is_a_form_for_each_kind_of_issue() -> None:
    """Issues without a form are turned off, so that there must be one for ideas, too."""
    assert read(FORMS[0])["blank_issues_enabled"] is False
    assert [path.stem for path in FORMS] == ["config", "error", "idea", "new-failure", "wrong-result"]
