# ruff: noqa: INP001 - a script of the action, no package
"""Say something in one comment of a pull request: written the first time, updated from then on.

It stands on the standard library: a runner of one's own has no gh, and GITHUB_API_URL leads to an enterprise's server,
too. What the runner gives: GITHUB_API_URL, GITHUB_REPOSITORY, GH_TOKEN. Usage: update_comment.py NUMBER MARKER FILE.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

_LONGEST = 65_536
"""Characters that GitHub takes."""
_CUT = "\n\n(The rest is in the run's summary.)\n"


def _call(method: str, address: str, body: str | None = None) -> tuple[Any, str]:
    """The answer, and the value of its header Link."""
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {os.environ['GH_TOKEN']}",
        "X-GitHub-Api-Version": "2022-11-28",
        "User-Agent": "kdoctor",
    }
    data = None if body is None else json.dumps({"body": body}).encode()
    request = urllib.request.Request(address, data=data, headers=headers, method=method)  # noqa: S310 - the runner's
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - the runner's
        return json.load(answer), answer.headers.get("Link") or ""


def _ours(comments: str, marker: str) -> str | None:
    """The address of the comment that starts with the marker, looked for on every page."""
    page: str | None = f"{comments}?per_page=100"
    while page:
        found, links = _call("GET", page)
        for comment in found:
            if (comment.get("body") or "").startswith(marker):
                return str(comment["url"])
        onward = re.search(r'<([^>]+)>;\s*rel="next"', links)
        page = onward[1] if onward else None
    return None


def main(number: str, label: str, file: str) -> None:
    """Write or update the comment."""
    marker = f"<!-- {label.replace('--', '- -')} -->"
    body = f"{marker}\n{Path(file).read_text(encoding='utf-8')}"
    if len(body) > _LONGEST:
        body = body[: _LONGEST - len(_CUT)] + _CUT
    comments = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/issues/{number}/comments"
    try:
        ours = _ours(comments, marker)
        _call("PATCH" if ours else "POST", ours or comments, body)
    except (OSError, ValueError) as error:
        # The diff is in the run's summary all the same; a fork's token may only read.
        why = "a fork's token may only read" if getattr(error, "code", 0) in (401, 403, 404) else "see the summary"
        print(f"::notice title=kdoctor::The comment could not be written ({error}): {why}.")  # noqa: T201 - for the log


if __name__ == "__main__":
    main(*sys.argv[1:])
