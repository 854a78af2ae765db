"""The hosts in TF_CONFIG, on the loopback interface, and the clock from fake programs."""

import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.cases import cases
from helpers.machine import context
from kdoctor.facts import Unavailable
from kdoctor.probes.process.child import ChildEnd, Children
from kdoctor_fleet.facts import JobHosts
from kdoctor_fleet.probes.job_hosts import child
from kdoctor_fleet.probes.job_hosts.probe import DEADLINE_S, collect


def found(workers: list[str], index: int | None = 0, **variables: str) -> JobHosts:
    task = {} if index is None else {"task": {"type": "worker", "index": index}}
    config = json.dumps({"cluster": {"worker": workers}, **task})
    return collected(TF_CONFIG=config, **variables)


def collected(**variables: str) -> JobHosts:
    environ = {**os.environ, "PATH": "/nowhere", **variables}
    facts = collect(context(Path("/"), environ))[JobHosts]
    assert isinstance(facts, JobHosts), facts
    return facts


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        yield server.getsockname()[1]


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port


@pytest.fixture
def free() -> int:
    return free_port()


def test_job_on_one_machine_asks_nothing() -> None:
    assert collected() == JobHosts()
    assert collected(TF_CONFIG=json.dumps({"cluster": {"worker": ["node1:2222"]}})) == JobHosts()


@pytest.mark.parametrize("text", ["{", "[]", '{"cluster": []}', '{"cluster": {"worker": "node1:2222"}}'])
def test_malformed_config_has_a_reason(text: str) -> None:
    assert collected(TF_CONFIG=text).malformed


def test_hosts_on_this_machine_are_examined(listening: int, free: int) -> None:
    own, refused, connected = found([f"127.0.0.1:{port}" for port in (free, free_port(), listening)]).hosts
    assert (own.task, own.own, own.port_free, own.state) == ("worker 0", True, True, None)
    assert (refused.state, connected.state) == ("refused", "connected")
    assert {host.local for host in (own, refused, connected)} == {True}
    assert {host.resolved for host in (own, refused, connected)} == {True}
    assert refused.path_mtu
    assert refused.path_mtu == refused.interface_mtu


def test_port_in_use_is_not_free(listening: int, free: int) -> None:
    own, _ = found([f"127.0.0.1:{listening}", f"127.0.0.1:{free}"]).hosts
    assert own.port_free is False
    assert own.error


def test_name_without_address_is_unresolved(free: int) -> None:
    _, other = found([f"127.0.0.1:{free}", "kdoctor-test.invalid:2222"]).hosts
    assert other.resolved in (False, None)
    assert other.state is None


@pytest.mark.parametrize(("address", "port"), [("node1", None), ("node1:x", None), ("node1:99999", None)])
def test_address_without_port_is_kept(address: str, port: int | None) -> None:
    _, other = found(["127.0.0.1:1", address]).hosts
    assert (other.host, other.port) == (address, port)


def test_task_of_this_machine_may_be_unknown(free: int) -> None:
    assert [host.own for host in found([f"127.0.0.1:{free}"] * 2, index=None).hosts] == [False, False]


def test_host_that_does_not_answer_ends_in_time(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        where = server.getsockname()
        backlog = []
        try:
            for _ in range(3):  # a full backlog does not answer
                client = socket.socket()
                client.setblocking(False)  # noqa: FBT003
                client.connect_ex(where)
                backlog.append(client)
            monkeypatch.setattr(child, "CONNECT_S", 0.3)
            began = time.monotonic()
            assert child._connect(socket.AF_INET, where)["state"] == "timed-out"
            assert time.monotonic() - began < 5
        finally:
            for client in backlog:
                client.close()


@cases((socket.EAI_AGAIN, None), (socket.EAI_NONAME, False))  # a resolver that does not answer says nothing
def test_reverse_name_of_a_resolver(monkeypatch: pytest.MonkeyPatch, code: int, expected: bool | None) -> None:  # noqa: FBT001
    def fails(_: str) -> object:
        raise socket.gaierror(code, "")

    monkeypatch.setattr(socket, "gethostbyaddr", fails)
    assert child._resolves_back("192.0.2.1") is expected


def program(folder: Path, name: str, answer: str, code: int = 0) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\nprintf '%s' '{answer}'\nexit {code}\n")
    (folder / name).chmod(0o755)


TRACKING = "A9FEA97B,169.254.169.123,4,1769.0,{offset},0.1,0.1,-9.2,0.0,0.02,0.0005,0.0003,16.2,{leap}"


@cases(("0.000012", "Normal", "True"), ("-2.5", "Normal", "True"), ("0.0", "Not synchronised", "False"))
def test_clock_is_read_from_chrony(tmp_path: Path, free: int, offset: str, leap: str, synchronized: str) -> None:
    program(tmp_path / "bin", "chronyc", TRACKING.format(offset=offset, leap=leap))
    facts = found([f"127.0.0.1:{free}"] * 2, PATH=f"{tmp_path}/bin")
    assert (facts.clock_source, str(facts.clock_synchronized)) == ("chronyc", synchronized)
    assert facts.clock_offset_s == float(offset)


@pytest.mark.parametrize(("answer", "synchronized"), [("yes", "True"), ("no", "False"), ("", "None")])
def test_clock_is_read_from_systemd(answer: str, synchronized: str, tmp_path: Path, free: int) -> None:
    program(tmp_path / "bin", "chronyc", "506 Cannot talk to daemon", code=1)
    program(tmp_path / "bin", "timedatectl", answer)
    facts = found([f"127.0.0.1:{free}"] * 2, PATH=f"{tmp_path}/bin")
    assert str(facts.clock_synchronized) == synchronized
    assert facts.clock_source == ("timedatectl" if answer else None)


def test_probe_ends_at_its_deadline() -> None:
    began = time.monotonic()
    found(["127.0.0.1:1", "192.0.2.1:9"])  # TEST-NET-1 (RFC 5737): nothing answers there
    assert time.monotonic() - began < DEADLINE_S + 5


def test_killed_probe_is_unavailable(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    def killed(self: Children, argv: list[str], **_: Any) -> ChildEnd:
        return ChildEnd(
            exit_code=None, signal="SIGKILL", timed_out=False, records=(), chatter="", stderr="", seconds=0.1
        )

    monkeypatch.setattr(Children, "run", killed)
    config = json.dumps({"cluster": {"worker": [f"127.0.0.1:{free}", "127.0.0.2:9"]}})
    facts = collect(context(Path("/"), {**os.environ, "TF_CONFIG": config}))[JobHosts]
    assert isinstance(facts, Unavailable)
    assert "SIGKILL" in facts.unavailable
