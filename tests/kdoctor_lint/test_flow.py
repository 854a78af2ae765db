"""Names are followed through every construct of Python that binds them."""

import sys
from pathlib import Path

import pytest

from kdoctor_lint.engine import lint

BUILD = "keras.Sequential([keras.layers.Dense(1)])"
HEAD = "import keras\nimport tensorflow as tf\nstrategy = tf.distribute.MirroredStrategy()\n"
INSIDE = f"with strategy.scope():\n    model = {BUILD}\n"
COMPILE = "model.compile(optimizer='adam', loss='mse')\n"


def ids(tmp_path: Path, code: str) -> list[str]:
    path = tmp_path / "train.py"
    path.write_text(code, encoding="utf-8")
    return [item.rule.id for item in lint([str(path)]).findings]


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(HEAD + INSIDE + "net: object = model\nnet.compile('adam', 'mse')", id="annotation"),
        pytest.param(HEAD + INSIDE + "(net := model).compile('adam', 'mse')", id="walrus"),
        pytest.param(HEAD + INSIDE + "nets = [1, model]\nnets[-1].compile('adam', 'mse')", id="index"),
        pytest.param(HEAD + INSIDE + "a, (b, c) = 1, (model, 2)\nb.compile('adam', 'mse')", id="unpacking"),
        pytest.param(HEAD + INSIDE + "for net in [model]:\n    net.compile('adam', 'mse')", id="for"),
        pytest.param(HEAD + INSIDE + "while True:\n    " + COMPILE, id="while"),
        pytest.param(HEAD + INSIDE + "try:\n    " + COMPILE + "finally:\n    pass", id="try"),
        pytest.param(HEAD + INSIDE + "match 1:\n    case 1:\n        " + COMPILE, id="match"),
        pytest.param(
            HEAD + INSIDE + "async def main():\n    " + COMPILE + "import asyncio\nasyncio.run(main())\n" + COMPILE,
            id="async",
        ),
        pytest.param(HEAD + INSIDE + "if __name__ == '__main__':\n    " + COMPILE, id="main"),
        pytest.param(
            HEAD
            + "class A:\n    def __init__(self):\n        self.b = B(self)\n"
            + "class B:\n    def __init__(self, a):\n        self.a = a\n"
            + "one = A() if input() else A()\n"
            + INSIDE
            + COMPILE,
            id="objects that have each other",
        ),
        pytest.param(
            HEAD
            + "def f():\n    global model\n    with strategy.scope():\n        model = "
            + BUILD
            + "\nf()\n"
            + COMPILE,
            id="global",
        ),
        pytest.param(
            HEAD + "def f():\n    model = None\n    def g():\n        nonlocal model\n        with strategy.scope():\n"
            "            model = " + BUILD + "\n    g()\n    " + COMPILE + "f()",
            id="nonlocal",
        ),
        pytest.param(
            HEAD + "def f(*, net=None, **rest):\n    net.compile('adam', 'mse')\n" + INSIDE + "f(net=model, a=1)",
            id="keyword",
        ),
        pytest.param(HEAD + INSIDE + "(lambda net: net.compile('adam', 'mse'))(model)", id="lambda"),
        pytest.param(
            HEAD + INSIDE + "class A:\n    def __init__(self, net):\n        self.net = net\n    def __call__(self):\n"
            "        self.net.compile('adam', 'mse')\nA(model)()",
            id="object",
        ),
        pytest.param(
            "from tensorflow import *\n"
            + HEAD.replace("tf.", "").replace("import tensorflow as tf\n", "")
            + INSIDE
            + COMPILE,
            id="star",
        ),
        pytest.param(
            HEAD + "scopes = strategy.scope\nwith scopes():\n    model = " + BUILD + "\n" + COMPILE, id="bound method"
        ),
        pytest.param(
            HEAD
            + "strategy.extra = 1\n"
            + INSIDE
            + "x = {model}\ny = {1: 2 for _ in x}\nz = {v for v in x}\nx[1:2]\n"
            + COMPILE,
            id="others",
        ),
        pytest.param(
            "try:\n    import keras\nexcept ImportError:\n    from tensorflow import keras\n"
            + HEAD.removeprefix("import keras\n")
            + INSIDE
            + COMPILE,
            id="either import",
        ),
    ],
)
def test_model_is_followed(tmp_path: Path, code: str) -> None:
    assert set(ids(tmp_path, code)) == {"lint.compile-outside-scope"}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="except* needs Python 3.11")
def test_model_is_followed_through_exception_groups(tmp_path: Path) -> None:
    code = HEAD + INSIDE + "try:\n    " + COMPILE + "except* ValueError:\n    pass\n"
    assert ids(tmp_path, code) == ["lint.compile-outside-scope"]


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(HEAD + INSIDE + "model = other()\n" + COMPILE, id="rebound"),
        pytest.param(HEAD + INSIDE + "def f(model):\n    " + COMPILE, id="a parameter of the same name"),
        pytest.param(HEAD + INSIDE + "keras = strategy = None\nmodel = keras\n", id="unbound"),
        pytest.param(HEAD + INSIDE + "if True:\n    pass\nelse:\n    " + COMPILE, id="never reached"),
        pytest.param(HEAD + INSIDE + "def f():\n    return 1\n    " + COMPILE + "f()", id="after return"),
        pytest.param(
            "from . import keras\n" + HEAD.removeprefix("import keras\n") + INSIDE + COMPILE,
            id="a keras of the package",
        ),
        pytest.param(HEAD + "yes = [model for model in []]\n" + COMPILE, id="a comprehension's name"),
    ],
)
def test_other_object_of_same_name_is_not_reported(tmp_path: Path, code: str) -> None:
    assert "lint.compile-outside-scope" not in ids(tmp_path, code)
