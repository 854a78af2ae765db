"""Units and paths that the builders share."""

KIB, MIB, GIB = 1024, 1024**2, 1024**3
DRIVER = "580.105.08"
PYTHON = "/opt/job/bin/python"
SITE = "/opt/job/lib/python3.11/site-packages"
