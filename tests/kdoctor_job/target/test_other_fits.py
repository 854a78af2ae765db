"""The other calls of fit in a script's text. The call in line 1 is the one that was reached."""

from helpers.cases import cases
from kdoctor_job.target.other_fits import other_fits


@cases(
    ("net.fit(x)\nnet.fit(y)", [2]),
    ("net.fit(\n  x)\nother.fit(x, callbacks=[])", [3]),
    ("net.fit(x); scaler.fit(x, y); tokens.fit_on_texts(x, epochs=1)", []),
    ("net.fit(x) if a else net.fit(y)", []),
    ("if a: net.fit(x)\nelse:\n  net.fit(y)\nnet.fit(z)", [4]),
    ("def a(): net.fit(x)\ndef b():\n  self.net.fit(x)", []),
    ("net.fit(x)\ndef broken(:", []),
    ("fit(x)\nnet.fit(x, epochs=3)", [2]),
)
def test_other_calls_of_fit(script: str, expected: list[int]) -> None:
    assert other_fits(script.encode(), 1) == expected
