"""``python -m kdoctor``: the command line."""

from kdoctor.cli import main

if __name__ == "__main__":
    main()
