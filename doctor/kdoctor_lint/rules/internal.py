"""Problems that the linter detects while it reads files and ignore comments."""

from kdoctor.model import Severity
from kdoctor_lint.model import Rule

SYNTAX_ERROR = Rule(
    id="lint.syntax-error",
    code="KD901",
    severity=Severity.ERROR,
    title="Checks for scripts and notebook cells that cannot be parsed.",
    why="""Code that cannot be parsed is not linted. kdoctor parses with its own Python version, so it also reports
scripts for Python 2 or for a newer Python. The other cells of a notebook are still linted.""",
    fix="Name Python scripts and notebooks only. Fix the syntax, or run kdoctor with the Python version of the script.",
    bad='print "training starts"\n',
    good='print("training starts")\n',
    sources=("https://docs.python.org/3/library/ast.html",),
)
UNREADABLE_FILE = Rule(
    id="lint.unreadable-file",
    code="KD902",
    severity=Severity.ERROR,
    title="Checks for files that cannot be read.",
    why="""A file that cannot be read is not linted, and is never counted as clean. Typical causes are
missing permissions, a wrong encoding, binary files, notebooks that are not JSON, and deeply nested code.""",
    fix="Save the file as UTF-8, or declare its encoding.",
    bad="# a file in Latin-1 that does not declare its encoding\n",
    good="# -*- coding: latin-1 -*-\n",
    sources=("https://peps.python.org/pep-0263/",),
)
IGNORE_WITHOUT_REASON = Rule(
    id="lint.ignore-without-reason",
    code="KD903",
    severity=Severity.WARNING,
    title="Checks for ignore comments without a rule or a reason.",
    why="""Later readers of the line need to know whether the reason still holds. An ignore comment without a rule or
a reason has no effect.""",
    fix="Name the rule and give a reason.",
    bad="dataset = load()  # kdoctor: ignore[lint.no-prefetch]\n",
    good="dataset = load()  # kdoctor: ignore[lint.no-prefetch] the data is in memory\n",
    sources=("the comments that silence a finding: kdoctor lint --help",),
)
UNUSED_IGNORE = Rule(
    id="lint.unused-ignore",
    code="KD904",
    severity=Severity.INFO,
    title="Checks for ignore comments that silence nothing.",
    why="""The comment is outdated, is on the wrong line, or names an unknown rule. It might silence a real finding
later.""",
    fix="Remove the comment, or correct the id of the rule.",
    bad="epochs = 10  # kdoctor: ignore[lint.no-prefetch] the data is in memory\n",
    good="epochs = 10\n",
    sources=("the comments that silence a finding: kdoctor lint --help",),
)
