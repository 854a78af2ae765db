import io

from helpers.cases import cases
from kdoctor.text.canvas import Canvas, canvas_for


class Stream(io.StringIO):
    def __init__(self, *, terminal: bool, encoding: str = "utf-8") -> None:
        super().__init__()
        self._terminal, self._encoding = terminal, encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self._terminal


@cases(
    (None, {"COLUMNS": "100"}, Canvas(width=80)),
    (Stream(terminal=False), {}, Canvas(width=80)),
    (Stream(terminal=False), {"COLUMNS": "100"}, Canvas(width=100)),
    (Stream(terminal=False), {"COLUMNS": "many"}, Canvas(width=80)),
    (Stream(terminal=False), {"COLUMNS": "1"}, Canvas(width=40)),
    (Stream(terminal=False), {"COLUMNS": "9" * 5000}, Canvas(width=120)),
    (Stream(terminal=True), {"COLUMNS": "90"}, Canvas(width=90, colour=True)),
    (Stream(terminal=True), {}, Canvas(width=80, colour=True)),
    (Stream(terminal=True), {"NO_COLOR": "1"}, Canvas(width=80)),
    (Stream(terminal=True), {"TERM": "dumb"}, Canvas(width=80)),
    (Stream(terminal=False, encoding="ANSI_X3.4-1968"), {}, Canvas(width=80, unicode=False)),
)
def test_canvas_of_a_stream(stream: Stream | None, environ: dict[str, str], expected: Canvas) -> None:
    assert canvas_for(stream, environ) == expected
