"""What the linter itself notices: files that it cannot read, and comments that do not do what they should."""

from __future__ import annotations

from kdoctor.model import Severity
from kdoctor_lint.model import Rule

SYNTAX_ERROR = Rule(
    id="lint.syntax-error",
    severity=Severity.ERROR,
    title="Every script and notebook cell is Python that this interpreter can parse.",
    why="""What cannot be parsed was not looked at. kdoctor parses with the Python that it runs under: a script
for Python 2, or for a newer Python, is told here, too. In a notebook the other cells are linted all the same.""",
    bad='print "training starts"\n',
    good='print("training starts")\n',
    sources=("https://docs.python.org/3/library/ast.html",),
)
UNREADABLE_FILE = Rule(
    id="lint.unreadable-file",
    severity=Severity.ERROR,
    title="Every file that is named can be read.",
    why="""What cannot be read was not looked at, and is never counted as clean: a broken link, a missing
permission, bytes that are not in the encoding that the file declares, a notebook that is no JSON, code that is
nested too deeply.""",
    bad="# a file in Latin-1 that does not say so\n",
    good="# -*- coding: latin-1 -*-\n",
    sources=("https://peps.python.org/pep-0263/",),
)
IGNORE_WITHOUT_REASON = Rule(
    id="lint.ignore-without-reason",
    severity=Severity.WARNING,
    title="An ignore comment names its rules and gives its reason.",
    why="""Whoever reads the line next year needs to know whether the reason still holds. A comment without a
reason, or without a rule, silences nothing.""",
    bad="""dataset = load()  # kdoctor: ignore[lint.no-prefetch]
""",
    good="""import keras
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
batch_size = 32 * strategy.num_replicas_in_sync
dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(batch_size)  # kdoctor: ignore[lint.no-prefetch] in memory
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(10)])
    model.compile(optimizer="adam", loss="mse")
model.fit(dataset)
""",
    sources=("docs/lint.md",),
)
UNUSED_IGNORE = Rule(
    id="lint.unused-ignore",
    severity=Severity.INFO,
    title="An ignore comment silences something.",
    why="""A comment that silences nothing is left over, stands on the wrong line, or names a rule that does not
exist; it would silence a real finding one day.""",
    bad="epochs = 10  # kdoctor: ignore[lint.no-prefetch] the data is in memory\n",
    good="epochs = 10\n",
    sources=("docs/lint.md",),
)
