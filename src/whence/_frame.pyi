from typing import NamedTuple

class Frame(NamedTuple):
    name: str
    filename: str
    line: int | None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    kind: str = "python"
