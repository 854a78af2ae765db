"""A child process that runs in the background, next to other children."""

import contextlib
import threading
from collections.abc import Mapping, Sequence

from kdoctor.probes.process.child import ChildEnd, Children, ChildrenEnded, Process
from kdoctor.probes.process.readers import OnRecord


class BackgroundProcess:
    """A child in the background. It must end when its standard input closes."""

    def __init__(
        self, children: Children, argv: Sequence[str], *, env: Mapping[str, str], deadline_s: float, on_record: OnRecord
    ) -> None:
        self._children = children
        self._process: Process | None = None
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self.ended: ChildEnd | None = None
        """How the child ended; None while it runs, and if it was ended together with all others."""
        self.failure: str | None = None
        """Why the child could not be started or read, if so."""
        self._thread = threading.Thread(target=self._run, args=(argv, env, deadline_s, on_record), daemon=True)
        self._thread.start()

    def end(self, grace_s: float) -> None:
        """Ask the child to end, and kill it after ``grace_s`` seconds."""
        self._ending.set()
        self._close_stdin()
        self._thread.join(timeout=grace_s)
        if self._thread.is_alive() and self._process:
            self._children.end(self._process)
            self._thread.join(timeout=grace_s)

    def _run(self, argv: Sequence[str], env: Mapping[str, str], deadline_s: float, on_record: OnRecord) -> None:
        try:
            self.ended = self._children.run(
                argv, env=env, deadline_s=deadline_s, on_record=on_record, on_start=self._started, keep_records=False
            )
        except ChildrenEnded:
            pass  # the run was interrupted, which is reported elsewhere
        except Exception as error:  # noqa: BLE001 - its failure must not end the run
            self.failure = f"{type(error).__name__}: {error}"

    def _started(self, process: Process) -> None:
        with self._lock:
            self._process = process
        if self._ending.is_set():
            self._close_stdin()

    def _close_stdin(self) -> None:
        with self._lock:
            if self._process and self._process.stdin:
                with contextlib.suppress(OSError):
                    self._process.stdin.close()
