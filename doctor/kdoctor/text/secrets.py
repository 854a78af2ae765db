"""Masks secrets in text, so that no report or snapshot contains one."""

import json
import re

MASK = "***"
"""What replaces a secret."""

_SECRET_NAME = re.compile(
    r"token|secret|passw(?:or)?d|passphrase|credential|cookie|api_?key|access_?key|private_?key"
    r"|(?:^|_)(?:auth|jwt|key|pass|pwd|sas)(?:_|$)",
    re.IGNORECASE,
)
# Each pattern takes time in proportion to the text: what comes before a keyword is looked at, not searched.
_URL_CREDENTIALS = re.compile(r"(?<=[A-Za-z0-9+.-]://)[^/\s@\"']+@")
_CREDENTIALS = re.compile(r"(?<![\w.+:/%-])[\w.+-]+:[^\s:@/\"']+@(?!sha\d+:)(?=[\w\[])")
_ASSIGNMENT = re.compile(
    r"(?P<name>token|secret|passw(?:or)?d|passphrase|credentials?|sshpass"
    r"|(?:account|api|access|auth|private|secret)[_-]?key(?:_base)?|(?<=_)key|(?<=[?&])key"
    r"|(?<![^\W_])(?:pass|pat|pwd|pw|sig|signature|jwt))"
    r"(?P<between>\\?[\"']?\]?\s*(?:[=:]|\((?=\s*[\"']))\s*)(?P<value>\"(?:[^\"\\\n]|\\.)+\"|'[^'\n]+'|(?:\\?[\"'])?[^\s\"'&;,=][^\s\"'&;,]*)",
    re.IGNORECASE,
)
_OPTION = re.compile(
    r"(?<!\S)(?P<name>--?\w[\w.-]*)(?P<between>=|\s+)(?P<value>\"[^\"]*\"|'[^']*'|[^\s\"'-]\S*|(?<==)\S+)",
    re.IGNORECASE,
)
_SECRET_OPTION = re.compile(
    r"(?:token|secret|passw(?:or)?d|passphrase|credentials?|cookie|(?:api|access|private)[_.-]?key"
    r"|(?:^|[_.-])(?:auth|jwt|key|pass|pat|pw|pwd|sas))$",
    re.IGNORECASE,
)
_USER = re.compile(r"(?<!\S)(?P<user>(?:-u|--user|--proxy-user)(?:=|\s+)[A-Za-z][\w.@-]*:|sshpass\s+-p\s*)\S+")
_LOGIN = re.compile(
    r"(?P<before>\b(?:(?<=\s)login\s.{0,200}?(?<=\s)-p\s*|redis-cli\b.{0,200}?\s-a\s*|(?:mysql|mariadb)[\w-]*\s.{0,200}?(?<=\s)-p)"
    r"|\bwandb\s+login\s+(?:-\S+\s+)?(?=\w{20})|\bcookie:\s*\w+=)[^\s;\"']+",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(?P<scheme>\b(?:bearer\s+|authorization:\s*\w+\s+))[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_TOKENS = re.compile(
    r"\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bgithub_pat_\w{20,}"
    r"|\bglpat-[\w-]{20,}"
    r"|\bhf_[A-Za-z0-9]{20,}"
    r"|\bnvapi-[\w-]{20,}"
    r"|\bsk-[\w-]{20,}"
    r"|\bxox[abprs]-[\w-]{10,}"
    r"|\b(?:npm|dop_v1|dckr_pat|pypi)[_-][\w-]{32,}"
    # a short prefix and many characters of all kinds, as most services make them: sk_live_..., r8_..., gsk_...
    r"|\b[a-z][a-z0-9]{0,9}(?:_[a-z]{2,6})?_(?=[A-Za-z]*\d)(?=[a-z0-9]*[A-Z])(?=[A-Z0-9]*[a-z])[A-Za-z0-9]{20,}"
    r"|\bya29\.[\w-]{20,}|\bSG\.[\w-]{16,}\.[\w-]{16,}|\bSK[0-9a-f]{32}\b"
    r"|(?<=hooks\.slack\.com/services/)[\w/]+|(?<=/webhooks/)[\w/-]+|(?<=/webhook/)[^\s\"']+"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\bAIza[\w-]{35}"
    r"|(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*"
)

_NAMED = re.compile(
    r"(?P<before>(?<![^\W_])(?:key\\?[\"']?\s*[=:]\s*\\?[\"']?(?=\w{20})|(?:password|passwd|secret|token)\s+))"
    r"(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[\w-]{12,}",
    re.IGNORECASE,
)
"""A word that may name a secret, and a value that looks drawn."""

_IDENTIFYING = re.compile(r"[/\\]|GPU-[0-9a-f]|MIG-|\*\*\*|\b\d+(?:\.\d+){3}:\d+", re.IGNORECASE)


def is_identifying(value: str) -> bool:
    """Whether a value looks like a path, a device's serial number, an address or a masked secret."""
    return _IDENTIFYING.search(value) is not None


def is_secret_name(name: str) -> bool:
    """Whether a variable or key of that name probably holds a secret."""
    return _SECRET_NAME.search(name) is not None


def mask(text: str) -> str:
    """The text without credentials in URLs, tokens of known forms, ``password=...``, ``--api-key ...`` and the like."""
    text = _URL_CREDENTIALS.sub(f"{MASK}@", text)
    text = _CREDENTIALS.sub(f"{MASK}@", text)
    text = _TOKENS.sub(MASK, text)
    text = _OPTION.sub(_mask_option, text)
    text = _USER.sub(rf"\g<user>{MASK}", text)
    text = _LOGIN.sub(rf"\g<before>{MASK}", text)
    text = _BEARER.sub(rf"\g<scheme>{MASK}", text)
    text = _NAMED.sub(rf"\g<before>{MASK}", text)
    return _ASSIGNMENT.sub(_mask_assignment, text)


def _mask_option(found: re.Match[str]) -> str:
    if not _SECRET_OPTION.search(found["name"].lstrip("-")):
        return found[0]
    return f"{found['name']}{found['between']}{MASK}"


def _mask_assignment(found: re.Match[str]) -> str:
    value = found["value"]
    before = value[: len(value) - len(value.lstrip("\\\"'"))]
    after = value[-1] if value[-1] == before[-1:] else ""
    return f"{found['name']}{found['between']}{before}{MASK}{after}"


def mask_variable(name: str, value: str) -> str:
    """An environment variable's value without secrets. A JSON value (``TF_CONFIG``) is searched key by key."""
    if value and is_secret_name(name):
        return MASK
    try:
        parsed = json.loads(value) if value.lstrip()[:1] in ("{", "[") else None
        masked = _mask_json(parsed)
        if parsed is not None:
            return value if masked == parsed else json.dumps(masked)
    except (ValueError, RecursionError):  # not JSON, or nested too deeply
        pass
    return mask(value)


def _mask_json(value: object) -> object:
    if isinstance(value, dict):
        return {key: MASK if is_secret_name(key) and entry else _mask_json(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_mask_json(entry) for entry in value]
    return mask(value) if isinstance(value, str) else value
