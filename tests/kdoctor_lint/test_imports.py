"""Functions, classes and objects of imported modules of the same tree are followed."""

from pathlib import Path

import pytest

from kdoctor_lint.engine import lint

HEAD = "import keras\nimport tensorflow as tf\n"
MODULES = {
    "models.py": HEAD
    + """
SIZE = 64
PER_REPLICA_BATCH = 32
net = keras.Sequential([keras.layers.Dense(1)])

def build(units=1):
    return keras.Sequential([keras.layers.Dense(units)])

def optimizer():
    return keras.optimizers.SGD(lr=0.1, clipnorm=1.0)

def rebuild():
    return build()

class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)
""",
    "branch.py": HEAD + "if gpus:\n    setup()\n\ndef build():\n    return keras.Sequential([keras.layers.Dense(1)])\n",
    "pkg/__init__.py": "",
    "pkg/scopes.py": HEAD + "strategy = tf.distribute.MirroredStrategy()\n\ndef make():\n    return strategy\n",
    "pkg/far.py": "from models import build as far\n",
    "pkg/first.py": "from .second import *\nfrom .far import far as ahead\n",
    "pkg/second.py": "from . import first\n",
    "broken.py": "def build(:\n",
    "jobs.py": "from tensorflow.python.client.device_lib import list_local_devices as listed\n"
    "def call(f):\n    f(0)\ndef start(f):\n    def inner(rows):\n        call(f)\n    return spread(inner)\n",
}
MAIN = HEAD + "strategy = tf.distribute.MirroredStrategy()\n"
USE = "with strategy.scope():\n    model.compile('adam', 'mse')\n"
SIZES = """from models import PER_REPLICA_BATCH as size
with strategy.scope():
    model = keras.Sequential([])
    model.compile('adam')
"""
BOTH = "from models import build\nwith strategy.scope():\n    good = build()\n    good.compile('a')\nmodel = build()\n"
OUTSIDE, INSIDE = "model-outside-scope", "compile-outside-scope"


def findings(tmp_path: Path, name: str, code: str) -> list[tuple[int, str]]:
    for file, text in MODULES.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text, encoding="utf-8")
    (tmp_path / name).write_text(code, encoding="utf-8")
    return [(item.spot.line, item.rule.id.partition(".")[2]) for item in lint([str(tmp_path / name)]).findings]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("from models import build\nmodel = build()\n" + USE, [(5, OUTSIDE)]),
        ("import models as m\nmodel = m.build(units=2)\n" + USE, [(5, OUTSIDE)]),
        ("from branch import build\nmodel = build()\n" + USE, [(5, OUTSIDE)]),
        ("from models import *\nmodel = build()\n" + USE, [(5, OUTSIDE)]),
        ("from models import Net\nmodel = Net()\n" + USE, [(5, OUTSIDE)]),
        ("from models import net as model\n" + USE, [(4, OUTSIDE)]),
        ("from models import rebuild\nmodel = rebuild()\n" + USE, [(5, OUTSIDE)]),
        ("from pkg import scopes\nmodel = keras.Sequential()\nwith scopes.strategy.scope():\n    model.compile('a')\n",
         [(5, OUTSIDE)]),
        ("from pkg.scopes import make\nwith make().scope():\n    model = keras.Sequential([])\nmodel.compile('adam')\n",
         [(7, INSIDE)]),
        ("from models import optimizer, build\nwith strategy.scope():\n    build().compile(optimizer(), 'mse')\n",
         [(6, "clipping")]),
        (BOTH + USE, [(8, OUTSIDE)]),
        ("from pkg.far import far\nmodel = far()\n" + USE, [(5, OUTSIDE)]),
        ("from pkg.first import ahead\nmodel = ahead()\n" + USE, [(5, OUTSIDE)]),
        (SIZES + "model.fit(x, batch_size=size)\n", [(8, "per-replica-batch")]),
        ("from jobs import listed, start\nstart(lambda _: listed())\n", [(5, "list-local-devices")]),
    ],
)  # fmt: skip
def test_imported_code_is_followed(tmp_path: Path, code: str, expected: list[tuple[int, str]]) -> None:
    assert findings(tmp_path, "train.py", MAIN + code) == expected


def test_relative_import_is_followed(tmp_path: Path) -> None:
    code = "from ..models import build\nfrom .scopes import make\nmodel = build()\n"
    assert findings(tmp_path, "pkg/train.py", MAIN + code + USE) == [(6, OUTSIDE)]


@pytest.mark.parametrize(
    "code",
    [
        "from broken import build\nmodel = build()\n" + USE,
        "from absent import build\nmodel = build()\n" + USE,
        "from models import other\nmodel = other()\n" + USE,
        "from models import build\nwith strategy.scope():\n    model = build()\n    model.compile('adam')\n",
        "from models import optimizer\n",
    ],
)
def test_other_code_has_no_finding(tmp_path: Path, code: str) -> None:
    assert findings(tmp_path, "train.py", MAIN + code) == []


def test_large_and_many_modules_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "large.py").write_text(MODULES["models.py"] + "#" * 300_000, encoding="utf-8")
    assert findings(tmp_path, "train.py", MAIN + "from large import build\nmodel = build()\n" + USE) == []
    for number in range(70):
        (tmp_path / f"m{number}.py").write_text(MODULES["models.py"], encoding="utf-8")
    many = "".join(f"from m{number} import build\n" for number in range(70))
    (tmp_path / "all.py").write_text(many, encoding="utf-8")
    assert findings(tmp_path, "train.py", MAIN + "from all import build\nmodel = build()\n" + USE) == []
    own = "from all import build\nfrom m69 import build\nmodel = build()\n"  # those of the script itself are
    assert findings(tmp_path, "train.py", MAIN + own + USE) == [(6, OUTSIDE)]


@pytest.mark.parametrize(
    ("script", "packages", "expected"),
    [
        ("top/a/b/c/d/e/train.py", ["top"], [(5, OUTSIDE)]),  # the package that the script is in
        ("jobs/train.py", ["libraries/top"], [(5, OUTSIDE)]),  # a folder of the repository
        ("jobs/train.py", ["libraries/top", "copies/top"], []),  # either may be meant
        ("jobs/train.py", ["../elsewhere/top"], []),  # another repository
    ],
)
def test_packages_of_a_repository(
    tmp_path: Path, script: str, packages: list[str], expected: list[tuple[int, str]]
) -> None:
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    (root / script).parent.mkdir(parents=True)
    for package in packages:
        (root / package).mkdir(parents=True, exist_ok=True)
        (root / package / "models.py").write_text(MODULES["models.py"], encoding="utf-8")
    assert findings(root, script, MAIN + "from top.models import build\nmodel = build()\n" + USE) == expected


def test_an_optimizer_of_tensorflow_addons_may_be_the_other_one(tmp_path: Path) -> None:
    choice = "optimizer = keras.optimizers.Adam() if adam else tfa.optimizers.LAMB()\n"
    use = "with strategy.scope():\n    keras.Sequential([]).compile(optimizer, 'mse')\n"
    code = "import tensorflow_addons as tfa\n" + choice + use
    assert findings(tmp_path, "train.py", MAIN + code) == [(4, "removed-api"), (5, "optimizer-outside-scope")]
