"""Applies the fixes of findings to files. LibCST is imported only here, when fixes are asked for."""
