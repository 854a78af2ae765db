"""What all HTML pages share: how templates are filled, and the one script that a page's policy allows."""

import base64
import hashlib
from importlib.resources import files

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

SHARED = "kdoctor.report.html"


def templates_of(package: str) -> Environment:
    """The templates of a package and the shared ones. Values are escaped, and a missing value is an error."""
    return Environment(
        loader=ChoiceLoader([PackageLoader(name, "") for name in dict.fromkeys((package, SHARED))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def packaged(package: str, name: str) -> Markup:
    """A file of a package of kdoctor, which goes into a page as it is."""
    return Markup(files(package).joinpath(name).read_text(encoding="utf-8"))  # noqa: S704 - nothing from outside


def policy_hash(script: str) -> str:
    """The digest by which a Content-Security-Policy allows a script of the page."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
