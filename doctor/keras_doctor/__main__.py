"""``python -m keras_doctor``: the command line."""

import os
import sys
from contextlib import suppress

if __name__ == "__main__":
    # `python -m` puts the working directory first, where a file could replace a module that kdoctor needs.
    with suppress(OSError):  # the directory was deleted
        if sys.path and sys.path[0] in ("", os.getcwd()):
            del sys.path[0]
    from keras_doctor.entry import main

    main()
