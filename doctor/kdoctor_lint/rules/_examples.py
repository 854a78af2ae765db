"""Code that the examples of rules share."""

KERAS = "import keras\nimport tensorflow as tf\n\n"
MIRRORED = KERAS + "strategy = tf.distribute.MirroredStrategy()\n"
MODEL = "model = keras.Sequential([keras.layers.Dense(10)])\n"
SCOPE = f"""with strategy.scope():
    {MODEL}    model.compile(optimizer="adam", loss="mse")
"""
PLAIN = MIRRORED + SCOPE  # A model that is created and compiled in the scope of a strategy
MEAN = "loss = tf.reduce_mean((model(x) - y) ** 2)\n"
DIVIDED = """losses = tf.reduce_sum((model(x) - y) ** 2, axis=-1)
        loss = tf.nn.compute_average_loss(losses, global_batch_size=global_batch)
"""
LOOP = f"""{MIRRORED}with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD()


def step(x, y):
    with tf.GradientTape() as tape:
        {MEAN}    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


for x, y in dataset:
    strategy.run(step, args=(x, y))
"""
"""A custom loop."""


def training(lines: str) -> str:
    """A script that trains on the dataset that the lines create."""
    script = f"{KERAS}{lines}{SCOPE}model.fit(dataset)\n"
    # The ``fit`` of Keras 3 fails on several workers.
    return script.replace("import keras", "import tf_keras as keras") if "MultiWorker" in lines else script


def outside(code: str, line: str) -> str:
    """The code with a line of the scope before it."""
    return code.replace(f"    {line}", "").replace("with strategy", f"{line}with strategy")
