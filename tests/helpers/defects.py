"""Code that plants a defect into the Keras or TensorFlow of a process, after ``import tensorflow as tf``."""

NAN = """
plain = tf.keras.layers.Dense.call

def poisoned(self, inputs, *args, **kwargs):
    outputs = plain(self, inputs, *args, **kwargs)
    return outputs * float("nan") if tf.distribute.get_strategy().num_replicas_in_sync > 1 else outputs

tf.keras.layers.Dense.call = poisoned
"""

DROPPED_REPLICA = """
plain = tf.GradientTape.gradient

def dropped(self, *args, **kwargs):
    gradients = plain(self, *args, **kwargs)
    replica = tf.distribute.get_replica_context()
    if replica is None or replica.num_replicas_in_sync == 1:
        return gradients
    heard = tf.cast(tf.not_equal(replica.replica_id_in_sync_group, 1), tf.float32)
    return [gradient * heard for gradient in gradients]

tf.GradientTape.gradient = dropped
"""

SKIPPED_UPDATE = """
plain = tf.keras.optimizers.SGD.update_step

def lazy(self, gradient, variable, learning_rate):
    awake = tf.cast(tf.not_equal(tf.cast(self.iterations, tf.int64), 3), tf.float32)
    plain(self, gradient * awake, variable, learning_rate)

tf.keras.optimizers.SGD.update_step = lazy
"""

WRONG_SHARDS = """
plain = tf.distribute.Strategy.experimental_distribute_dataset

def doubled(self, dataset, options=None):
    if self.num_replicas_in_sync == 1:
        return plain(self, dataset, options)

    def first_half_twice(inputs, targets):
        half = tf.shape(inputs)[0] // 2
        return tf.concat([inputs[:half]] * 2, 0), tf.concat([targets[:half]] * 2, 0)

    return plain(self, dataset.map(first_half_twice), options)

tf.distribute.Strategy.experimental_distribute_dataset = doubled
"""
