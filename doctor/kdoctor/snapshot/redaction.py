"""Removes personal data from facts before they are written: user names, home folders, secrets.

Equal text is redacted equally, so a snapshot gets the same results as the live run.
"""

from __future__ import annotations

import getpass
import re
from pathlib import Path

from kdoctor.records import record
from kdoctor.text.secrets import mask, mask_variable

USER = "<user>"
"""Replaces a user name."""

# Common names: they do not identify a person, and are also names of folders.
_COMMON_NAMES = frozenset({
    "admin", "app", "bin", "conda", "data", "dev", "docker", "etc", "home", "jovyan", "keras", "lib", "nobody", "opt",
    "python", "root", "runner", "sbin", "share", "src", "sys", "tensorflow", "tmp", "ubuntu", "user", "usr", "var",
    "work",
})  # fmt: skip
_OTHER_HOME = re.compile(
    r"(?:^|(?<=[\s:;,=\"'(]))(?P<homes>(?:/home|/Users|[A-Za-z]:\\Users)[/\\])(?P<name>[^/\\:;,\s\"')]+)"
)


@record
class Redaction:
    """The user whose data is removed."""

    home: str
    """The home folder, replaced by ``~``."""
    user: str
    """The user name."""

    @classmethod
    def of_this_user(cls) -> Redaction:
        """The redaction for the user who runs kdoctor. In a container, that user may have no name and no home."""
        try:
            home = str(Path.home())
        except RuntimeError:
            home = ""
        try:
            user = getpass.getuser()
        except (OSError, KeyError, ImportError):
            user = ""
        return cls(home=home, user=user)

    def apply(self, value: object) -> object:
        """The JSON value without personal data. Keys are not changed."""
        if isinstance(value, dict):
            return {key: self._apply_entry(str(key), entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [self.apply(entry) for entry in value]
        return self.text(value) if isinstance(value, str) else value

    def _apply_entry(self, key: str, entry: object) -> object:
        """One entry of an object. A key in upper case is an environment variable."""
        if not isinstance(entry, str) or not key.isupper():
            return self.apply(entry)
        if self.user and entry == self.user and "USER" in key:
            return USER
        return self.text(mask_variable(key, entry))

    def text(self, text: str) -> str:
        """The text without home folders, user names in paths, and secrets."""
        if len(self.home) > 1:
            text = re.sub(rf"(?<![\w./\\-]){re.escape(self.home)}(?=$|[/\\:;,\s\"')])", "~", text)
        text = _OTHER_HOME.sub(rf"\g<homes>{USER}", text)
        if self.user and self.user.lower() not in _COMMON_NAMES:
            # A package may have the same name: nothing directly below site-packages or dist-packages is redacted.
            name = re.escape(self.user)
            text = re.sub(rf"(?<=[/\\])(?<!-packages[/\\]){name}(?=$|[/\\:;,\s\"')])", USER, text)
        return mask(text)
