"""Checks the language and the structure of the source: ``make lint``. Prints ``file:line: what`` for each fault.

To add a rule, write a function that yields lines and messages, and list it in ``RULES`` with the files that it is for.
Who may import whom is in the import contracts of pyproject.toml.
"""

import ast
import io
import json
import multiprocessing
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUFFIXES = {".py", ".md", ".yaml", ".yml", ".j2", ".sh", ".service", ".timer"}
FOLDERS = ("doctor", "checks", "checklists", "benchmarks", "docs", "tests")
PAGES = (
    "README.md", "CONTRIBUTING.md", "Makefile", "measure.mk", "action.yml", "pyproject.toml", ".pre-commit-hooks.yaml",
    ".github/update_comment.py", ".github/workflows/kdoctor.yml",
)  # fmt: skip

BANNED = {
    r"not so:": "say what was observed",
    r"\b(un)?told\b|\btells? (of|apart|when|how|why|what|so)\b": "report, unknown",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\banew\b": "again",
    r"\brubbish\b": "invalid data",
    r"\b(rightly|wrongly)\b": "correctly, incorrectly",
    r"(?!^nobody$)\bnobody\b|\bsomebody\b": "name who or what (nobody is also a Unix user)",
    r"\bin words\b": "drop it",
    r"\bthe way back\b|\bways? back\b": "rollback",
    r"\bby hand, and\b": "manually",
    r"(?<!there )\b(is|are|was|were) no (?!longer\b|more than\b|less than\b|GPUs?\b|way\b|(?:[a-z]+ )?need\b)": "is not a",
    r"\b(it|this|that|which|what|one|text|file|line|lock|page|key|name) stands\b|\bstands? (there|here|in|on|for|beside|before)\b": "is",
    r"\bbeside\b": "next to, with",
    r"\bof (its|your|their|our|one\'s|his|her) own\b": "your, its",
    r"\bis otherwise\b|\bsays? otherwise\b|\bsee otherwise\b": "different",
    r"\bapart from (one|each)\b|\bof their way apart\b": "differ",
    r"\bto and fro\b": "flaky",
    r"\bso many\b": "the number of",
    r"\b(red|green) (run|state|check|lock)s?\b|\b(first|is|are|was|all|turns?) (red|green)\b|\blast.green\b": "failed, passing",
    r"\bcome by\b|\bcame by\b": "obtained",
    r"\bin vain\b": "never finished",
    r"\bdecided in advance\b": "failure policy",
    r"\bnothing but\b": "only",
    r"\bwhoever\b|\bwhosever\b": "who",
    r"\bhinders?\b|\bgravest?\b|\bgraver\b": "prevents, most severe",
    r"\bone after another\b|\bone by one\b": "in sequence",
    r"\bshall\b|\bthus\b|\bhence\b": "plain words",
}
"""Regular expression (case-insensitive) to better words."""
_PATTERNS = [
    (re.compile(pattern.lower().replace(r"\b", "")), re.compile(pattern, re.IGNORECASE), instead)
    for pattern, instead in BANNED.items()
]
"""A fast one, which finds at least as much in small letters; the pattern; better words."""
_JOINED = re.compile(r"""["']\s*[frb]*["']|\\n|\s+""")
"""What a string or a wrapped line may have between two words."""
NAMES = re.compile(r"untold|_told|mended|anew|rubbish|otherwise|green|in_words|nobody|_stands|^test_(the|its?)_")
"""Not allowed in the names of functions, classes and modules."""
_DEFINED = re.compile(r"^\s*(?:async +)?(?:def|class) +(\w+)", re.MULTILINE)

BUDGET = ROOT / "tests/budget.json"
"""The lines of Python that each package may have: a number goes down freely, and up in a commit that says why."""
SLACK, LEAST_SLACK = 0.02, 20
"""How far below its budget a package may be, as a share and in lines."""
MOST_TARGETS = 12
MOST_LINES_OF_A_MODULE = 450
MOST_LINES_OF_A_FUNCTION = 90
MOST_LOOSE_MODULES = 9
WORDS_OF_A_MESSAGE = 13
EXPORTING = {"cli", "facts", "kdoctor", "kdoctor_checks", "testing"}
"""Public packages, and those with code."""

COUNTS = frozenset(
    {"count", "epochs", "gpus_seen", "number", "replicas", "requested", "samples", "steps", "total", "trainable"}
    | {"updates", "variables", "workers"}
)
"""Names of whole numbers of things, as the code uses them."""
PLURAL = re.compile(r"^ (?:[a-z-]+ )?(?!bytes|times|its)[A-Za-z]{2,}(?<![isu])s\b(?! is\b)")
"""A word in the plural, with at most one word before it. Units of size and factors are never singular here."""
VERBS = re.compile(
    r"^ (?:[a-z-]+ )?(?:has|was|does|lists|needs|gives|makes|requires|responds|takes|matches|runs|trains)\b"
)


class File:
    """A file to check. It is parsed at most once."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self.is_code = name.endswith(".py")
        self.is_test = name.startswith("tests/")

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        """Every node of the code."""
        nodes: list[ast.AST] = [ast.parse(self.text)]
        # Faster than ast.walk. Other attributes may lead back: programs set the parent of nodes, and Load is one object.
        for node in nodes:
            for value in [getattr(node, name, None) for name in node._fields]:
                if isinstance(value, list):
                    nodes += [item for item in value if isinstance(item, ast.AST)]
                elif isinstance(value, ast.AST):
                    nodes.append(value)
        return nodes

    @cached_property
    def documentation(self) -> Sequence[ast.Constant]:
        """The docstrings, including those of constants and fields."""
        values = [node.value for node in self.nodes if isinstance(node, ast.Expr)]
        return [value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)]

    def texts(self) -> Iterator[tuple[int, str]]:
        """What a person reads, with its lines. Other strings of tests may quote the output of other programs."""
        if not self.is_code:
            yield from enumerate(self.text.splitlines(), 1)
            return
        found = self.documentation if self.is_test else [node for node in self.nodes if isinstance(node, ast.Constant)]
        yield from ((node.lineno, node.value) for node in found if isinstance(node.value, str))
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


Found = Iterator[tuple[int, str]]


def banned_words(file: File) -> Found:
    """Words of the old voice. Most files have none, and need no parsing."""
    plain = _JOINED.sub(" ", file.text.lower())
    patterns = [item[1:] for item in _PATTERNS if item[0].search(plain)]
    for line, text in file.texts() if patterns else ():
        words = " ".join(text.split())
        for pattern, instead in patterns:
            if match := pattern.search(words):
                around = words[max(0, match.start() - 40) : match.end() + 40]
                yield line, f"{match.group()!r} in {around!r}; use: {instead}"


def banned_names(file: File) -> Found:
    """Names of the old voice."""
    if NAMES.search(Path(file.name).stem):
        yield 1, f"the name of the module {Path(file.name).stem}"
    if any(map(NAMES.search, _DEFINED.findall(file.text))):
        for node in file.nodes:
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) and NAMES.search(node.name):
                yield node.lineno, f"the name {node.name}"


def lengths(file: File) -> Found:
    """Modules and functions that are too long."""
    lines = file.text.count("\n")
    if lines > MOST_LINES_OF_A_MODULE:
        yield lines, f"{lines} lines; a module has at most {MOST_LINES_OF_A_MODULE}"
    for node in file.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MOST_LINES_OF_A_FUNCTION:
                yield node.lineno, f"{node.name} has {length} lines; a function has at most {MOST_LINES_OF_A_FUNCTION}"


def exports(file: File) -> Found:
    """Packages that export names. A name has one home."""
    path = Path(file.name)
    if path.name == "__init__.py" and path.parent.name not in EXPORTING:
        for node in ast.parse(file.text).body:
            if isinstance(node, ast.ImportFrom) and node.module != "__future__":
                yield node.lineno, f"the package exports names of {node.module}; import them from there"


def plurals(file: File) -> Found:
    """A count that is followed by a plural, however large it is."""
    for node in file.nodes:
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, text in pairwise(node.values):
            if not isinstance(value, ast.FormattedValue) or not isinstance(text, ast.Constant):
                continue
            after = str(text.value)
            if _is_count(value.value) and PLURAL.match(after) and not VERBS.match(after):
                yield node.lineno, f"{{{ast.unparse(value.value)}}}{after}; use kdoctor.text.lists.counted"


def _is_count(value: ast.expr) -> bool:
    """Whether an expression is known to be a number of things."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in {"len", "sum"}
    name = getattr(value, "id", None) or getattr(value, "attr", None)
    return isinstance(value, ast.Name | ast.Attribute) and name in COUNTS


Rule = Callable[[File], Found]
RULES: tuple[tuple[Rule, re.Pattern[str]], ...] = (
    (banned_words, re.compile(r".*")),
    (banned_names, re.compile(r"(doctor|checks|checklists|benchmarks|docs|tests)/.*\.py")),
    (lengths, re.compile(r"(doctor|checks|checklists|benchmarks)/.*\.py")),
    (exports, re.compile(r"(doctor|checks|checklists|benchmarks)/.*\.py")),
    (plurals, re.compile(r"(doctor|checks)/.*\.py")),
)
"""Each rule, and the files that it is for."""
_WITH_MESSAGES = re.compile(r"(doctor|checks|checklists|benchmarks)/(?!.*cli/__init__).*\.py")
"""The table of commands repeats the first line of their help, which a test compares."""


def messages(file: File) -> Mapping[str, int]:
    """The long lines that a module prints, which have one home (docs/architecture.md, "Messages")."""
    documentation = {id(node) for node in file.documentation}
    return {
        node.value: node.lineno
        for node in file.nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation
        if len(node.value.split()) >= WORDS_OF_A_MESSAGE and "\n" not in node.value
    }


def faults(file: File) -> list[str]:
    """What is wrong with a file."""
    return [
        f"{file.name}:{line}: {what}"
        for rule, names in RULES
        if names.fullmatch(file.name)
        for line, what in rule(file)
    ]


def repeated(found: Iterable[tuple[str, Mapping[str, int]]]) -> Iterator[str]:
    """The messages that two files have."""
    homes: dict[str, str] = {}
    for name, lines in found:
        for text, line in lines.items():
            if homes.setdefault(text, name) != name:
                yield f"{name}:{line}: {text!r} is also in {homes[text]}; write a message once"


def _read(name: str) -> tuple[list[str], Mapping[str, int]]:
    file = File(name, (ROOT / name).read_text(encoding="utf-8"))
    return faults(file), messages(file) if _WITH_MESSAGES.fullmatch(name) else {}


def all_files() -> list[str]:
    """The files to check, relative to the repository."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    names = [path.relative_to(ROOT).as_posix() for path in found if not path.is_relative_to(ROOT / "tests/__pycache__")]
    kept = [name for name in names if not re.search(r"__pycache__|\.egg-info", name)]
    return sorted([*PAGES, *(name for name in kept if not name.startswith("tests/") or name.endswith(".py"))])


def lines_of_packages() -> dict[str, int]:
    """The lines of Python in each package, and in each folder that is not one."""
    folders = [*sorted((ROOT / "doctor").glob("kdoctor*")), *(ROOT / name for name in FOLDERS if name != "doctor")]
    return {
        folder.relative_to(ROOT).as_posix(): sum(path.read_bytes().count(b"\n") for path in folder.rglob("*.py"))
        for folder in folders
        if any(folder.rglob("*.py"))
    }


def over_budget(lines: Mapping[str, int], budget: Mapping[str, int]) -> Iterator[str]:
    """Packages that are larger than their budget, or so much smaller that it should go down."""
    for name, count in lines.items():
        most = budget.get(name, 0)
        if count > most:
            yield (
                f"{name}: package {name} has {count} lines, the budget is {most}: take lines away, or raise the number in "
                "a commit whose message says what the lines buy (python tests/style.py --budget)"
            )
        elif count < most - max(most * SLACK, LEAST_SLACK):
            yield f"{name}: package {name} has {count} lines, the budget is {most}: lower it (python tests/style.py --budget)"


def too_many_targets(makefile: str) -> Iterator[str]:
    """More targets than the front page of ``make help`` has room for."""
    targets = re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)
    if len(targets) > MOST_TARGETS:
        yield f"Makefile:1: {len(targets)} targets with a help text, at most {MOST_TARGETS}; put rare ones into measure.mk"


def main(names: Sequence[str]) -> int:
    """Check these files, or all; 1 if there are faults. ``--budget`` writes today's lines of each package instead."""
    if list(names) == ["--budget"]:
        BUDGET.write_text(json.dumps(lines_of_packages(), indent=2) + "\n", encoding="utf-8")
        return 0
    chosen = list(names) or all_files()
    with multiprocessing.get_context("fork").Pool() as pool:
        found = pool.map(_read, chosen, chunksize=16)
    wrong = [line for lines, _ in found for line in lines]
    wrong += repeated(zip(chosen, (texts for _, texts in found), strict=True))
    if not names:
        wrong += over_budget(lines_of_packages(), json.loads(BUDGET.read_text(encoding="utf-8")))
        wrong += too_many_targets((ROOT / "Makefile").read_text(encoding="utf-8"))
    loose = [path.stem for path in (ROOT / "doctor/kdoctor").glob("*.py") if not path.stem.startswith("__")]
    if len(loose) > MOST_LOOSE_MODULES:
        wrong.append(f"doctor/kdoctor:1: {len(loose)} modules in no package, at most {MOST_LOOSE_MODULES}: {loose}")
    print("\n".join(wrong), end="\n" * bool(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
