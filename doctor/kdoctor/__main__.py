"""``python -m kdoctor``: the same command line as ``kdoctor``."""

from kdoctor.cli import main

if __name__ == "__main__":
    main()
