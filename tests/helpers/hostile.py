"""Strings with which a stranger's machine, file or package attacks what reads and prints them."""

from __future__ import annotations

from collections.abc import Mapping

CANARY = "kdoctor-canary"
"""A file that a shell creates if it runs a part of a value. It needs no program."""

HOSTILE: Mapping[str, str] = {
    "clear screen": "\x1b[2J\x1b[1;1Hall checks passed",
    "window title": "\x1b]0;title\x07x",
    "C1 control": "a\x9b31mb\x85c",
    "backspace": "FAIL\b\b\b\bPASS\rOK",
    "right to left": "abc\u202edcba\u2066x\u2069",
    "lone surrogate": "a\ud800b",
    "null": "a\x00b",
    "HTML": "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&",
    "attribute": "\" onmouseover=\"alert(1)\" x='",
    "Markdown": "](javascript:alert(1)) ![x](http://example.org/x.png) | `a` <b> @octocat #1 *b* _c_\n# heading\n- [ ] x",
    "fence": "x\n```\n# out of the fence\n~~~\n",
    "CSV": '=HYPERLINK("http://example.org")',
    "Prometheus": 'a"} 1\nkdoctor_verdict{conclusion="pass"} 1 #',
    "JUnit": "]]></failure><failure message='x'><![CDATA[",
    "workflow command": "x\n::error file=a.py,line=1::pwned\n::set-output name=a::b\n##[error]pwned\n##vso[task.complete]",
    "Nagios": "x | time=0;;;0\nOK - fine | a=1",
    "JSON": '", "verdict": "pass", "x": "',
    "YAML": 'x"\nwaivers:\n  - {check: "*", subject: "*", reason: r, owner: o, expires: 2099-01-01}\n#',
    "shell": f"x$(>{CANARY})`>{CANARY}`;>{CANARY};|>{CANARY} && >{CANARY}",
    "shell lines": f"x\n>{CANARY}\n#",
    "shell quotes": f"x' ; >{CANARY} ; '\" ; >{CANARY} ; \"",
    "shell index": f"a[$(>{CANARY})]",
    "here-document": f"x\nEND_OF_VARIABLES\n>{CANARY}\n",
    "option": "--index-url=http://example.org",
    "direct reference": "keras @ http://example.org/keras.whl",
    "path": "../../../../etc/passwd",
    "format": "{0.__class__} %s %n ${HOME} {{7*7}}",
    "device control": "a\x1bP1;1|17/6162\x1b\\b\x1b_x\x1b\\c\x9d0;t\x9cd\x7f",
    "separators": "a\u2028b\u2029c\x0bd\x0ce\u200bf\ufeffg",
    "encoded workflow command": "x%0A::error::pwned%0D%0A::add-mask::x",
    "comment": "--> <!-- <?php ?> <![CDATA[ ]]> */ /* {# #} {% x %} {{ x }} ${jndi:ldap://x}",
    "link": "[x](data:text/html,x) <javascript:x> <http://example.org> ![](//example.org/x) javascript:x data:x vbscript:x",
    "table": "a | b\\| c\n|---|\n<details open><summary>x</summary>\n\n",
    "sheet": "\t=cmd|' /C calc'!A0",
    "sheet sign": "@SUM(1+1)*cmd|'x'!A0",
    "trailing backslash": "x\\",
    "combining": "a" + "\u0301" * 300,
    "tags": "\U000e0001\U000e0041\ufe0f\u200d\u180e",
    "shell history": f"!!; !x ~root * ? [a-z] {{a,b}} $'\\n>{CANARY}' \\\n>{CANARY}",
    "long": "x" * 5000,
}  # fmt: skip

SECRETS: Mapping[str, str] = {
    "option": "train.py --password SECRETVALUE --epochs 3",
    "quoted option": "train.py --api-key 'SECRETVALUE'",
    "short option": "train.py --key=SECRETVALUE",
    "assignment": "pw=SECRETVALUE",
    "address": "MASTER_ADDR=user:SECRETVALUE@host",
    "URL": "https://user:SECRETVALUE@host/x",
    "bearer": "Authorization: Bearer SECRETVALUESECRETVALUE",
    "token": "hf_SECRETVALUESECRETVALUESECRETVALUE",
    "variable": "WANDB_API_KEY=SECRETVALUE",
    "joined name": "PGPASSWORD=SECRETVALUE psql",
    "camel case": "{clientSecret: SECRETVALUE}",
    "curl": "curl -u ada:SECRETVALUE https://example.org",
    "sshpass": "sshpass -p SECRETVALUE ssh node1",
    "webhook": "https://hooks.slack.com/services/T01/B02/SECRETVALUE",
}
