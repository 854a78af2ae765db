"""Programs that run inside the interpreter that kdoctor examines.

They use the standard library and the job's packages (TensorFlow, Keras, JAX, NumPy), nothing of kdoctor or its
dependencies, and no syntax newer than Python 3.8. kdoctor does not import them.
"""
