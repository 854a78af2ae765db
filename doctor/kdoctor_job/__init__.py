"""The Python API: ``kdoctor.preflight`` and ``kdoctor.guard``.

This package is the only one that runs in the user's process, with the TensorFlow that is imported there: a model in
memory cannot be handed to a child process.
"""
