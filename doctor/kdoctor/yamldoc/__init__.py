"""Documents that people write in YAML: read safely, and every mistake told with its line and column."""

from kdoctor.yamldoc.problems import DocumentError, Problem
from kdoctor.yamldoc.source import Path, Source, YamlSourceError, read_yaml

__all__ = ["DocumentError", "Path", "Problem", "Source", "YamlSourceError", "read_yaml"]
