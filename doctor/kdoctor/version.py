"""The version of kdoctor."""

__version__ = "0.1.0"
