"""Processes that a test has marked in their environment, with ``KDOCTOR_TEST_MARK``."""

import time

import psutil


def carries(process: psutil.Process, mark: object) -> bool:
    """Whether the process has the mark and still runs."""
    try:
        return process.environ().get("KDOCTOR_TEST_MARK") == str(mark) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def left_of(mark: object, seconds: float = 10) -> list[psutil.Process]:
    """The processes with the mark that still run after some seconds."""
    end = time.monotonic() + seconds
    while (left := [one for one in psutil.process_iter() if carries(one, mark)]) and time.monotonic() < end:
        time.sleep(0.05)
    return left
