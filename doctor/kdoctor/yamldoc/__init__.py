"""YAML documents written by people: read safely, every error reported with file, line and column."""

from kdoctor.yamldoc.nodes import Mark, Node, Path
from kdoctor.yamldoc.problems import DocumentError, Problem
from kdoctor.yamldoc.source import Source, YamlSourceError, read_file, read_yaml
from kdoctor.yamldoc.validation import StrictDocument, StrictPart, invalid, strings_of, validate

__all__ = [
    "DocumentError",
    "Mark",
    "Node",
    "Path",
    "Problem",
    "Source",
    "StrictDocument",
    "StrictPart",
    "YamlSourceError",
    "invalid",
    "read_file",
    "read_yaml",
    "strings_of",
    "validate",
]
