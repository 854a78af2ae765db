"""Checklists for Keras on other backends than TensorFlow."""
