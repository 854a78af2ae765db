"""The version matrix: what each TensorFlow release was built for, and where it runs."""
