"""Programs that run inside the interpreter that kdoctor examines.

They use the standard library and what the job itself uses (TensorFlow, Keras, NumPy), nothing of
kdoctor or its dependencies, and no syntax newer than Python 3.8. kdoctor never imports them.
"""
