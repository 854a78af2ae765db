"""Runs scripts that import TensorFlow, each in a process that is forked after one import of it.

``python forked_scripts.py FILE ...`` prints the exit status and the output of each as JSON.
"""

import json
import os
import runpy
import signal
import sys
import tempfile

DEADLINE_S = 300


def run(path: str) -> tuple[int, str]:
    """The exit status and the output of a script."""
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            _become(path, output.fileno())
        _, status = os.waitpid(child, 0)
        output.seek(0)
        return os.waitstatus_to_exitcode(status), output.read().decode(errors="replace")


def _become(path: str, output: int) -> None:
    """End this process with the exit status of the script."""
    signal.alarm(DEADLINE_S)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.argv = [path]
    status = 1
    try:
        runpy.run_path(path, run_name="__main__")
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, flush=True)
    except BaseException as error:  # noqa: BLE001 - the output of the script
        print(f"{type(error).__name__}: {error}", flush=True)
    finally:
        sys.stdout.flush()
        os._exit(status)


def main(paths: list[str]) -> None:
    """Import what the scripts share, and run them."""
    import tensorflow as tf

    assert tf.keras.Model  # loaded on first use
    print(json.dumps({path: run(path) for path in paths}))


if __name__ == "__main__":
    main(sys.argv[1:])
