"""The failure path of multi-worker training: one worker dies during the training, or never starts.

Measures: ``others_s``, the seconds from the loss until the other worker ended (absent if kdoctor had to end it after
``patience_s``).
"""

from __future__ import annotations

import time

from kdoctor_target.runner.case import Case
from kdoctor_target.scenarios.multi_worker import join
from kdoctor_target.training.custom_loop import train_custom_loop
from kdoctor_target.training.workers import Cluster, Task, note_workers

WORKERS = 2
PATIENCE_S = 25.0
LAST_STEP = 3


def dies(case: Case) -> None:
    """The second worker is killed after its third step, as by the kernel's out-of-memory killer."""
    _lose(case, start=WORKERS)


def never_comes(case: Case) -> None:
    """The second worker is in TF_CONFIG, but is never started."""
    _lose(case, start=1)


def _task(case: Case, me: Task) -> None:
    strategy, batches = join(case, me, WORKERS)
    if me.number:
        case.die_after(LAST_STEP)
    train_custom_loop(case, strategy, batches)


def _lose(case: Case, *, start: int) -> None:
    case.phase("strategy")
    patience = min(PATIENCE_S, 0.7 * case.deadline_s)
    case.measure({"patience_s": patience})
    cluster = Cluster(case, worker=WORKERS)
    began = time.monotonic()
    try:
        for index in range(start):
            cluster.start(Task("worker", index), _task)
        ended = cluster.wait(patience)
    finally:
        cluster.end()
    note_workers(case, ended)
    if ended[0]["outcome"] != "timed-out":
        lost_s = ended[1]["seconds"] if start > 1 else 0.0
        case.measure({"others_s": time.monotonic() - began - lost_s})
