"""Read the pipes of a child process in threads, in bounded memory."""

import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import IO

RECORD_START = b"\x1e"
"""A record is this byte, a JSON text and a line feed (RFC 7464). Everything else on stdout is chatter."""

_TAIL_BYTES = 64 * 1024
_LONGEST_LINE = 8 * 1024 * 1024
_MOST_KEPT = 16 * 1024 * 1024
"""Bytes of records that are kept of one child. Their objects take up to 20 times as much memory."""
_READ_BYTES = 64 * 1024
_PIPE_WAIT_S = 2.0
"""How long another process may keep a pipe open after the child has ended."""

OnRecord = Callable[[object], None]
Take = Callable[[bytes], bool]
"""Takes a piece of a child's stdout as it is. Returns whether to go on; if not, the child is ended."""


class TooManyRecordsError(Exception):
    """A child sent more than kdoctor keeps."""


class _Reader(ABC):
    """Reads a stream to its end in a separate thread."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        self.error: Exception | None = None
        """The first exception of the function that gets the output, or why the stream could not be read to its end."""
        self._stream = stream
        self._abandoned = False
        self._thread = threading.Thread(target=self._read, daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the end of the stream, but not if another process keeps it open."""
        if self._thread.ident is None:  # it could not be started
            if self._stream:
                self._stream.close()
            return
        self._thread.join(timeout=_PIPE_WAIT_S)
        self._abandoned = self._thread.is_alive()

    def _read(self) -> None:
        if self._stream is None:
            return
        try:
            with self._stream as stream:
                descriptor = stream.fileno()
                while chunk := os.read(descriptor, _READ_BYTES):
                    if not self._abandoned and not self._take(chunk):
                        return
        except MemoryError as error:
            self.error = error

    @abstractmethod
    def _take(self, chunk: bytes) -> bool:
        """Take what was read; returns whether to go on reading."""


class TailReader(_Reader):
    """Keeps the end of a stream."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        self._tail = b""
        super().__init__(stream)

    @property
    def text(self) -> str:
        """The end of the stream."""
        return self._tail.decode("utf-8", "replace")

    def _take(self, chunk: bytes) -> bool:
        self._tail = (self._tail + chunk)[-_TAIL_BYTES:]
        return True


class OutputReader(_Reader):
    """Reads the stdout of a child."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        self.records: list[object] = []
        """The JSON records that are kept."""
        self.count = 0
        """The number of records so far."""
        super().__init__(stream)

    @property
    def chatter(self) -> str:
        """The end of the other output."""
        return ""


class RawReader(OutputReader):
    """Gives a stream to a function, piece by piece."""

    def __init__(self, stream: IO[bytes] | None, take: Take, on_refused: Callable[[], None]) -> None:
        self._give = take
        self._on_refused = on_refused
        self._refused = False
        super().__init__(stream)

    def _take(self, chunk: bytes) -> bool:
        """What comes after a refusal is dropped: a child whose pipe is closed could not end what it started."""
        try:
            if self._refused or self._give(chunk):
                return True
        except Exception as error:  # noqa: BLE001 - raised again by Children.run
            self.error = error
        self._refused = True
        self._on_refused()
        return True


class RecordReader(OutputReader):
    """Separates a stream into records and chatter."""

    def __init__(self, stream: IO[bytes] | None, on_record: OnRecord | None, *, keep: bool) -> None:
        self._keep_records = keep
        self._kept_bytes = 0
        self._on_record = on_record
        self._rest: list[bytes] = []
        self._rest_bytes = 0
        self._chatter = b""
        super().__init__(stream)

    @property
    def chatter(self) -> str:
        """The end of the other output."""
        return (self._chatter + b"".join(self._rest))[-_TAIL_BYTES:].decode("utf-8", "replace")

    def _take(self, chunk: bytes) -> bool:
        first, *others = chunk.split(b"\n")
        self._keep(first)
        for line in others:
            self._take_line(b"".join(self._rest))
            self._rest, self._rest_bytes = [], 0
            self._keep(line)
        if self._kept_bytes <= _MOST_KEPT:
            return True
        self.records.clear()
        self.error = TooManyRecordsError(f"it sent more than {_MOST_KEPT >> 20} MiB of records")
        return False  # closes the pipe, and a child that writes into it ends

    def _keep(self, piece: bytes) -> None:
        """Keep the part of a line that has been read so far, or its end if it is too long."""
        self._rest.append(piece)
        self._rest_bytes += len(piece)
        if self._rest_bytes > _LONGEST_LINE:
            self._rest = [b"".join(self._rest)[-_TAIL_BYTES:]]
            self._rest_bytes = len(self._rest[0])

    def _take_line(self, line: bytes) -> None:
        before, start, text = line.partition(RECORD_START)
        record = _parse(text) if start else None
        if record is None:
            self._chatter = (self._chatter + line + b"\n")[-_TAIL_BYTES:]
            return
        self._chatter = (self._chatter + before)[-_TAIL_BYTES:]
        self.count += 1
        if self._keep_records:
            self.records.append(record)
            self._kept_bytes += len(text)
        if self._on_record and not self.error:
            try:
                self._on_record(record)
            except Exception as error:  # noqa: BLE001 - raised by run(); an unread pipe would block the child
                self.error = error


def _parse(text: bytes) -> object:
    """The JSON value, or None if it is invalid (a child may print the start byte itself)."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
