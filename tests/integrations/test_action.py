"""The GitHub action: its steps run as on a GitHub runner, against a fake of GitHub's API."""

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from helpers.command import captured, environ, make_target
from helpers.integrations import KDOCTOR, ROOT, SHELL, read

ACTION = read(ROOT / "action.yml")
MARKER = "<!-- kdoctor checklist diff: ci/node.yaml -->\n"
CHECKLIST = """\
schema: kdoctor/checklist/v1
name: node
version: 1
owner: tests
checks:
  - {id: versions.tensorflow-installed, severity: error}
  - {id: versions.package-conflicts, severity: warning}
without: {baseline: a test of the action, edge-case: the same, failure-path: the same}
"""


class Api(ThreadingHTTPServer):
    """A server with the comments of pull request 7, two per page."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Comments)
        self.comments = [{"id": number, "body": f"comment of a person, number {number}"} for number in range(3)]
        self.refuses = False
        self.calls: list[tuple[str, str]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def ours(self) -> list[str]:
        return [str(comment["body"]) for comment in self.comments if str(comment["body"]).startswith(MARKER)]


class Comments(BaseHTTPRequestHandler):
    server: Api
    PLACE = "/repos/team/training/issues"

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        assert path == f"{self.PLACE}/7/comments"
        page = int((re.search(r"\bpage=(\d+)", query) or ["", "1"])[1])
        onward = {"Link": f'<{self.server.address}{path}?page={page + 1}>; rel="next", <x>; rel="last"'}
        shown = self.server.comments[2 * page - 2 : 2 * page]
        described = [{**item, "url": f"{self.server.address}{self.PLACE}/comments/{item['id']}"} for item in shown]
        self._answer(200, described, onward if len(self.server.comments) > 2 * page else {})

    def do_POST(self) -> None:
        assert self.path == f"{self.PLACE}/7/comments"
        self.server.comments.append({"id": len(self.server.comments), "body": self._body()})
        self._answer(201, {})

    def do_PATCH(self) -> None:
        number = int(self.path.removeprefix(f"{self.PLACE}/comments/"))
        self.server.comments[number]["body"] = self._body()
        self._answer(200, {})

    def _body(self) -> str:
        body: str = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
        return body

    def _answer(self, code: int, content: object, headers: Mapping[str, str] | None = None) -> None:
        assert self.headers["Authorization"] == "Bearer secret"
        self.server.calls.append((self.command, self.path))
        if self.server.refuses:
            self.send_error(403)
            return
        self.send_response(code)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Keep the test's output clean."""


@pytest.fixture
def api() -> Iterator[Api]:
    server = Api()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@dataclass
class Runner:
    """Runs a composite action as GitHub's runner does."""

    folder: Path
    workspace: Path
    api: str
    inputs: dict[str, str]
    action_path: Path = ROOT
    event_name: str = "pull_request"
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    used: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    log: str = ""
    failed: bool = False

    def run(self, *, leave_out: str = "") -> int:
        """Run the steps. Return the exit code of the last failed step, or 0."""
        code = 0
        for step in ACTION["runs"]["steps"]:
            if step["name"] == leave_out or not self._wanted(step.get("if", "")):
                continue
            if "uses" in step:
                self.used.append((step["uses"], {key: self._filled(value) for key, value in step["with"].items()}))
            elif done := self._shell(step):
                code, self.failed = done, True
        return code

    def _shell(self, step: dict[str, Any]) -> int:
        output = self.folder / "output"
        output.write_text("", encoding="utf-8")
        env = environ(
            **{name: self._filled(value) for name, value in step.get("env", {}).items()},
            RUNNER_TEMP=str(self.folder), GITHUB_OUTPUT=str(output),
            GITHUB_STEP_SUMMARY=str(self.folder / "summary.md"),
            GITHUB_REPOSITORY="team/training", GITHUB_API_URL=self.api, GITHUB_ACTIONS="true", CI="true",
        )  # fmt: skip
        done = captured([*SHELL, step["run"]], env=env, cwd=self.workspace)
        self.log += done.stdout + done.stderr
        if "id" in step:
            lines = output.read_text(encoding="utf-8").splitlines()
            self.outputs[step["id"]] = dict(line.partition("=")[::2] for line in lines)
        return done.returncode

    def _wanted(self, condition: str) -> bool:
        terms = [term.strip() for term in condition.split("&&") if term.strip()]
        if self.failed and "always()" not in terms:
            return False
        return all(self._true(term) for term in terms if term != "always()")

    def _true(self, term: str) -> bool:
        compared = re.fullmatch(r"([\w.-]+) (==|!=) '([^']*)'", term)
        assert compared, f"condition not supported by this runner: {term!r}"
        return (self._value(compared[1]) == compared[3]) == (compared[2] == "==")

    def _filled(self, text: str) -> str:
        return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda found: self._value(found[1]), text)

    def _value(self, name: str) -> str:
        known = {
            "github.action_path": str(self.action_path), "github.event_name": self.event_name, "github.token": "secret",
            "github.event.pull_request.number": "7", "runner.temp": str(self.folder),
        }  # fmt: skip
        if name.startswith("inputs."):
            key = name.removeprefix("inputs.")
            return self.inputs.get(key) or self._filled(ACTION["inputs"][key]["default"])
        if name.startswith("steps."):
            _, step, _, output = name.split(".")
            return self.outputs.get(step, {}).get(output, "")
        return known[name]


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, cwd=folder, env=environ())


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A repository whose branch removes one check from the checklist of main."""
    folder = tmp_path / "workspace"
    (folder / "ci").mkdir(parents=True)
    (folder / "ci" / "node.yaml").write_text(CHECKLIST, encoding="utf-8")
    (folder / "train.py").write_text("print('no Keras')\n", encoding="utf-8")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message=one")
    kept = [line for line in CHECKLIST.splitlines(keepends=True) if "package-conflicts" not in line]
    (folder / "ci" / "node.yaml").write_text("".join(kept), encoding="utf-8")
    return folder


def runner(tmp_path: Path, workspace: Path, api: Api, *, broken: bool = False, **inputs: str) -> Runner:
    folder = tmp_path / "runner"
    (folder / "kdoctor" / "bin").mkdir(parents=True)
    (folder / "kdoctor" / "bin" / "kdoctor").symlink_to(KDOCTOR)
    (folder / "kdoctor-reports").mkdir()
    target = make_target(tmp_path / "job", tensorflow=None if broken else "")
    given = {"checklist": "ci/node.yaml", "python": str(target), "options": "--no-smoke", "base": "main", **inputs}
    return Runner(folder, workspace, api.address, given)


INSTALL = next(step["name"] for step in ACTION["runs"]["steps"] if "pip install" in step.get("run", ""))
"""The step that needs the package index."""


def test_pull_request_gets_one_comment_that_is_updated(tmp_path: Path, workspace: Path, api: Api) -> None:
    ci = runner(tmp_path, workspace, api)
    assert ci.run(leave_out=INSTALL) == 0, ci.log
    (first,) = api.ours()
    assert "versions.package-conflicts" in first
    assert re.search("loosened", first, re.IGNORECASE)
    assert first.removeprefix(MARKER) in (ci.folder / "summary.md").read_text(encoding="utf-8")
    (workspace / "ci" / "node.yaml").write_text(CHECKLIST, encoding="utf-8")
    assert ci.run(leave_out=INSTALL) == 0, ci.log
    (second,) = api.ours()
    assert "versions.package-conflicts" not in second
    assert [method for method, _ in api.calls if method != "GET"] == ["POST", "PATCH"]
    assert [comment["body"] for comment in api.comments[:3]] == [f"comment of a person, number {n}" for n in range(3)]


def test_failed_check_fails_the_job_after_all_reports(tmp_path: Path, workspace: Path, api: Api) -> None:
    ci = runner(tmp_path, workspace, api, broken=True, lint="train.py")
    assert ci.run(leave_out=INSTALL) == 1
    assert ci.outputs["check"] == {"exit-code": "1"}
    assert re.search(r"^::error title=kdoctor%3A versions.tensorflow-installed::", ci.log, re.MULTILINE)
    assert len(api.ours()) == 1
    used = {action.partition("@")[0]: inputs for action, inputs in ci.used}
    reports = ci.folder / "kdoctor-reports"
    assert used["actions/upload-artifact"]["path"] == str(reports)
    assert Path(used["github/codeql-action/upload-sarif"]["sarif_file"]).is_file()
    assert {path.name for path in reports.iterdir()} == {
        "diff.md", "kdoctor.html", "kdoctor.json", "kdoctor.md", "kdoctor.sarif", "kdoctor.xml",
    }  # fmt: skip


def test_read_only_token_skips_only_the_comment(tmp_path: Path, workspace: Path, api: Api) -> None:
    api.refuses = True
    ci = runner(tmp_path, workspace, api)
    assert ci.run(leave_out=INSTALL) == 0
    assert re.search(r"^::notice title=kdoctor::.*HTTP Error 403", ci.log, re.MULTILINE)
    assert api.ours() == []
    assert (ci.folder / "summary.md").read_text(encoding="utf-8").count("## kdoctor") >= 1


def test_push_gets_no_comment_and_missing_base_is_usage_error(tmp_path: Path, workspace: Path, api: Api) -> None:
    ci = runner(tmp_path, workspace, api)
    ci.event_name = "push"
    assert ci.run(leave_out=INSTALL) == 0
    ci.inputs["base"] = "origin/none"
    assert ci.run(leave_out=INSTALL) == 2
    assert "origin/none" in ci.log
    assert api.calls == []


def test_long_comment_is_truncated(tmp_path: Path, api: Api) -> None:
    (tmp_path / "diff.md").write_text("é" * 100_000, encoding="utf-8")
    script = (ROOT / ".github" / "update_comment.py", "7", "kdoctor checklist diff: ci/node.yaml", tmp_path / "diff.md")
    env = environ(GITHUB_API_URL=api.address, GITHUB_REPOSITORY="team/training", GH_TOKEN="secret")  # noqa: S106
    subprocess.run(["python3", *script], check=True, env=env)
    (body,) = api.ours()
    assert len(body) == 65_536  # the longest comment that GitHub accepts
    kept, _, notice = body.rpartition("é")
    assert kept.startswith(f"{MARKER}é")
    assert "summary" in notice


@pytest.mark.services
@pytest.mark.parametrize("broken", [False, True])
def test_action_with_its_installation(tmp_path: Path, workspace: Path, api: Api, *, broken: bool) -> None:
    """Install from a clone of the repository, as a runner does. The dependencies come from the package index."""
    ci = runner(tmp_path, workspace, api, broken=broken)
    shutil.rmtree(ci.folder / "kdoctor")
    ci.action_path = tmp_path / "action"
    git(tmp_path, "clone", "--quiet", str(ROOT), str(ci.action_path))
    for name in ("action.yml", ".github/update_comment.py"):
        shutil.copy(ROOT / name, ci.action_path / name)
    assert ci.run() == int(broken), ci.log
    assert (ci.folder / "kdoctor" / "bin" / "kdoctor").is_file()
    assert len(api.ours()) == 1


@pytest.mark.services
@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
@pytest.mark.parametrize("step", [step for step in ACTION["runs"]["steps"] if "run" in step], ids=lambda s: s["name"])
def test_shellcheck_accepts_every_step(step: dict[str, Any]) -> None:
    command = ["shellcheck", "--shell=bash", "--exclude=SC2086", "-"]  # some variables are split on purpose
    done = captured(command, input=step["run"])
    assert done.returncode == 0, done.stdout
