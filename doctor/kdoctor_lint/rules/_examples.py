"""Code that the examples of rules share."""

KERAS = "import keras\nimport tensorflow as tf\n\n"
MIRRORED = KERAS + "strategy = tf.distribute.MirroredStrategy()\n"
MODEL = "model = keras.Sequential([keras.layers.Dense(10)])\n"
SCOPE = f"""with strategy.scope():
    {MODEL}    model.compile(optimizer="adam", loss="mse")
"""
PLAIN = MIRRORED + SCOPE
"""A model that is created and compiled in the scope of a strategy."""


def training(lines: str) -> str:
    """A script that trains on the dataset that the lines create."""
    return f"{KERAS}{lines}{SCOPE}model.fit(dataset)\n"


def outside(code: str, line: str) -> str:
    """The code with a line of the scope before it."""
    return code.replace(f"    {line}", "").replace("with strategy", f"{line}with strategy")
