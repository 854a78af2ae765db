"""Reads TF_CONFIG, and asks the network about its hosts in a child process: name servers and networks hang.

Sources: https://www.tensorflow.org/guide/distributed_training#setting_up_the_tf_config_environment_variable;
chronyc(1) and timedatectl(1) for the clock.
"""

import re
import shutil
from collections.abc import Mapping
from typing import Any

from kdoctor.facts import Facts, Unavailable
from kdoctor.probes.probe import Context, Probe
from kdoctor.probes.process.launch import own_program_argv
from kdoctor.probes.process.records import RecordError, build
from kdoctor_fleet.facts import JobConfig, JobHost, JobHosts

DEADLINE_S = 12.0
"""A name server is given up after ten seconds (resolv.conf(5): two attempts of five seconds)."""
_CLOCK_S = 3.0
_CHRONY_FIELDS = 14
_CHRONY_OFFSET = 4
"""Of ``chronyc -c tracking``: how many fields it has, and the place of the offset. The last is the leap status."""


def collect(context: Context) -> Facts:
    """The hosts and the clock; empty for a job on one machine, which needs neither."""
    text = context.environ.get("TF_CONFIG")
    if not text:
        return {JobHosts: JobHosts()}
    job = JobConfig.read(text)
    if len(job.tasks) < 2:  # noqa: PLR2004 - a job with peers
        return {JobHosts: JobHosts(malformed=job.malformed)}
    known: dict[str, Mapping[str, object]] = {}
    for task, address in job.tasks.items():
        host, port = _split(address)
        known[task] = {"task": task, "host": host, "port": port, "own": task == job.task}
    settings = {"deadline_s": DEADLINE_S, "tasks": [*known.values()]}
    argv = own_program_argv("kdoctor_fleet.probes.job_hosts.child", settings)
    end = context.children.run(argv, env=context.environ, deadline_s=DEADLINE_S)
    if not (end.ok or end.timed_out or end.records):
        return {JobHosts: Unavailable(unavailable=f"the probe of the job's hosts {end.describe()}")}
    for record in end.records:
        if isinstance(record, dict) and record.get("task") in known:
            known[record["task"]] = record
    try:
        hosts = tuple(build(JobHost, facts) for facts in known.values())
    except RecordError as error:
        return {JobHosts: Unavailable(unavailable=f"the probe of the job's hosts returned invalid data: {error}")}
    return {JobHosts: JobHosts(hosts=hosts, **_clock(context))}


def _split(address: str) -> tuple[str, int | None]:
    """Host and port of ``host:2222`` and ``[::1]:2222``."""
    host, _, port = address.rpartition(":")
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) >= 2**16:
        return address, None
    return host.strip("[]"), int(port)


def _clock(context: Context) -> Mapping[str, Any]:
    """What chrony or systemd report about the clock; nothing if neither is there."""
    fields = (_ask(context, "chronyc", "-c", "tracking") or "").strip().split(",")
    if len(fields) >= _CHRONY_FIELDS:
        try:
            offset: float | None = float(fields[_CHRONY_OFFSET])
        except ValueError:
            offset = None
        synchronized = not fields[-1].lower().startswith("not")
        return {"clock_source": "chronyc", "clock_synchronized": synchronized, "clock_offset_s": offset}
    answer = (_ask(context, "timedatectl", "show", "--property=NTPSynchronized", "--value") or "").strip()
    if answer in ("yes", "no"):
        return {"clock_source": "timedatectl", "clock_synchronized": answer == "yes"}
    return {}


def _ask(context: Context, *argv: str) -> str | None:
    if shutil.which(argv[0], path=context.environ.get("PATH")) is None:
        return None
    try:
        end = context.children.run(argv, env=context.environ, deadline_s=_CLOCK_S)
    except OSError:
        return None
    return end.chatter if end.ok else None


PROBE = Probe(name="job hosts", provides=(JobHosts,), collect=collect, deadline_s=DEADLINE_S + 2 * _CLOCK_S + 5)
