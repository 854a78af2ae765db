"""``python -m kdoctor``: the command line."""

import os
import sys

if __name__ == "__main__":
    # `python -m` puts the working directory first, where a file could replace a module that kdoctor needs.
    try:
        if sys.path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109 - pathlib could be such a file
            del sys.path[0]
    except OSError:
        pass
    from keras_doctor.entry import main

    main()
