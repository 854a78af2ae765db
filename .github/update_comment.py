# ruff: noqa: INP001 - a script of the action, not a package
"""Create or update one comment of a pull request.

Usage: update_comment.py NUMBER MARKER FILE. It needs only the standard library, because self-hosted runners have no gh.
The runner sets GITHUB_API_URL (also for GitHub Enterprise), GITHUB_REPOSITORY and GH_TOKEN.
"""

import json
import os
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

_LONGEST = 65_536
"""Maximum number of characters in a comment."""
_CUT = "\n\n(Truncated. See the summary of the run.)\n"


def _call(method: str, address: str, body: str | None = None) -> tuple[Any, str]:
    """The response body, and the value of the Link header."""
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {os.environ['GH_TOKEN']}",
        "X-GitHub-Api-Version": "2022-11-28",
        "User-Agent": "kdoctor",
    }
    data = None if body is None else json.dumps({"body": body}).encode()
    request = urllib.request.Request(address, data=data, headers=headers, method=method)  # noqa: S310 - URL set by the runner
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - URL set by the runner
        return json.load(answer), answer.headers.get("Link") or ""


def _ours(comments: str, marker: str) -> str | None:
    """The URL of the comment that starts with the marker, searched on every page."""
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
