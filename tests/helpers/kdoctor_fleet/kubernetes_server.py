"""A real API server of Kubernetes with its etcd, as the variable KUBEBUILDER_ASSETS names them. It has no nodes."""

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from ssl import CERT_NONE, create_default_context
from typing import Any

from helpers.kdoctor_fleet.slurm import free_ports

VARIABLE = "KUBEBUILDER_ASSETS"
PROGRAMS = ("etcd", "kube-apiserver")
_TOKEN = "token-of-the-tests"  # noqa: S105 - of a server that lives for one test
_START_S = 120


def installed() -> bool:
    """Whether the variable names a folder with both programs."""
    folder = os.environ.get(VARIABLE)
    return bool(folder) and all(Path(folder or "", program).is_file() for program in PROGRAMS)


class ApiServer:
    """The server, and a configuration of kubectl for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "kubeconfig"
        self._processes: list[subprocess.Popen[bytes]] = []
        etcd, peers, self._port = free_ports(3)
        self.url = f"https://127.0.0.1:{self._port}"
        key = folder / "service-accounts.key"
        create = ("ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-m", "PEM", "-N", "", "-f", str(key))
        subprocess.run(create, check=True)
        (folder / "tokens.csv").write_text(f"{_TOKEN},tests,1,system:masters\n", encoding="utf-8")
        self._run(
            "etcd", f"--data-dir={folder}/etcd", f"--listen-client-urls=http://127.0.0.1:{etcd}",
            f"--advertise-client-urls=http://127.0.0.1:{etcd}", f"--listen-peer-urls=http://127.0.0.1:{peers}",
        )  # fmt: skip
        self._run(
            "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{etcd}", f"--secure-port={self._port}",
            "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--cert-dir={folder}/certificates",
            f"--token-auth-file={folder}/tokens.csv", "--authorization-mode=RBAC", "--allow-privileged=true",
            "--disable-admission-plugins=ServiceAccount", "--service-cluster-ip-range=10.0.0.0/24",
            f"--service-account-issuer={self.url}", f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
        )  # fmt: skip
        self._configure()

    def start(self) -> None:
        """Wait until the server is ready.

        Raises:
            AssertionError: it is not, or a program has ended.
        """
        ends_at = time.monotonic() + _START_S
        while time.monotonic() < ends_at and all(process.poll() is None for process in self._processes):
            try:
                self.ask("GET", "/readyz")
                self.ask("GET", "/api/v1/namespaces/default")
            except OSError:
                time.sleep(0.5)
            else:
                return
        logs = "".join((self.folder / f"{name}.log").read_text(errors="replace")[-2000:] for name in PROGRAMS)
        raise AssertionError(f"the API server is not ready: {logs}")

    def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """The answer to a request; text if it is not JSON."""
        request = urllib.request.Request(  # noqa: S310 - of the loopback address
            f"{self.url}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {_TOKEN}", "Content-Type": kind},
        )
        context = create_default_context()
        context.check_hostname, context.verify_mode = False, CERT_NONE
        try:
            with urllib.request.urlopen(request, context=context, timeout=30) as answer:  # noqa: S310
                content = answer.read().decode()
        except urllib.error.HTTPError as error:
            raise OSError(f"{method} {path}: {error.code} {error.read().decode()}") from error
        return json.loads(content) if content.startswith("{") else content

    def stop(self) -> None:
        """End both programs."""
        for process in reversed(self._processes):
            process.terminate()
            process.wait(timeout=60)

    def _run(self, program: str, *arguments: str) -> None:
        with (self.folder / f"{program}.log").open("wb") as log:
            command = (str(Path(os.environ[VARIABLE], program)), *arguments)
            self._processes.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder))

    def _configure(self) -> None:
        cluster = {"server": self.url, "insecure-skip-tls-verify": True}
        document = {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": {"token": _TOKEN}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }  # fmt: skip
        self.config.write_text(json.dumps(document), encoding="utf-8")
