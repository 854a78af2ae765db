"""A server with the part of Kubernetes' API that kubectl needs to list pods and to read their logs."""

import json
import threading
from collections.abc import Collection, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from helpers.integrations import needs

CLIENTS = [
    pytest.param("--cache-dir=cache", marks=needs("kubectl")),
    pytest.param("", marks=pytest.mark.skipif(find_spec("kubernetes") is None, reason="not installed: kubernetes")),
]
"""An option that only kubectl has, and none, with which the API's client is used."""
_VERBS = ["get", "list"]
_PODS = {
    "name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": _VERBS, "shortNames": ["po"]
}  # fmt: skip
_DISCOVERY: Mapping[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [_PODS]},
}
_GONE = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}


def engine_options(config: Path, option: str) -> list[str]:
    """The options for a configuration, and one of ``CLIENTS``."""
    return [f"--engine-option={one}" for one in (f"--kubeconfig={config}", option) if one]


def pod(
    name: str, node: str | None, phase: str = "Succeeded", *, created: str = "2026-01-01T00:00:00Z", **status: Any
) -> dict[str, Any]:
    """A pod of the manifest's job."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "creationTimestamp": created,
            "labels": {"app.kubernetes.io/name": "kdoctor"},
        },
        "spec": {"containers": [{"name": "kdoctor", "image": "x:1"}], **({"nodeName": node} if node else {})},
        "status": {"phase": phase, **status},
    }  # fmt: skip


class KubernetesApi:
    """The server, and a configuration of kubectl for it."""

    def __init__(
        self,
        folder: Path,
        pods: list[dict[str, Any]],
        logs: Mapping[str, bytes],
        *,
        hangs: Collection[str] = (),
        later: Mapping[str, Mapping[str, Any] | None] | None = None,
    ) -> None:
        """Start it.

        Args:
            folder: where the configuration is written.
            pods: the pods.
            logs: of the pods, by name.
            hangs: the pods whose log does not end.
            later: the states of pods after they were listed; None if the pod is gone.
        """
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = urlsplit(self.path).path
                if path.endswith("/log"):
                    name = path.split("/")[-2]
                    self._send(api.logs[name], "text/plain", more=name in hangs)
                elif path in _DISCOVERY:
                    self._send(json.dumps(_DISCOVERY[path]).encode())
                elif path.endswith("/pods"):
                    self._send(json.dumps({"kind": "PodList", "apiVersion": "v1", "items": api.pods}).encode())
                else:
                    self._send_pod(path.rpartition("/")[2])

            def _send_pod(self, name: str) -> None:
                found = next((item for item in api.pods if item["metadata"]["name"] == name), {"status": None})
                status = (later or {}).get(name, found["status"])
                if status is None:
                    self._send(json.dumps(_GONE | {"message": f'pods "{name}" not found'}).encode(), code=404)
                else:
                    self._send(json.dumps(found | {"status": status}).encode())

            def _send(
                self, body: bytes, kind: str = "application/json", code: int = 200, *, more: bool = False
            ) -> None:
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body) + more))
                self.end_headers()
                self.wfile.write(body)
                if more:  # the last byte never comes
                    self.wfile.flush()
                    api.stopped.wait()

            def log_message(self, *arguments: object) -> None:
                pass

        self.pods, self.logs = pods, logs
        self.stopped = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.config = folder / "kubeconfig"
        self.config.write_text(
            json.dumps({
                "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [],
                "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.server.server_port}"}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
            })
        )  # fmt: skip

    def stop(self) -> None:
        """End the server."""
        self.stopped.set()
        self.server.shutdown()
        self.server.server_close()
