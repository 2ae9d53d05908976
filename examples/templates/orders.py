"""Where in a template? Errors, time and memory of Jinja2 templates, by their own lines.

A page of orders consists of four templates: one inherits, one is included, one has
macros. Jinja2 makes Python of them; nothing below mentions a line of that.

    python examples/templates/orders.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import jinja2

import whence
from handled import HandledEnvironment
from whence.handles import LoweredError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Item = Mapping[str, str | int]

PAGES = Path(__file__).resolve().parent / "pages"
ITEMS: list[Item] = [{"name": "tea", "cents": 350}, {"name": "milk", "cents": 120}]
INCOMPLETE: list[Item] = [*ITEMS, {"name": "sugar"}]


class Spent(NamedTuple):
    """The calls of a function of a template, and how many nanoseconds they took."""

    filename: str
    line: int | None
    name: str
    calls: int
    total: int


class Shop:
    """What the templates call, and what it knows of its callers."""

    def __init__(self, environment: type[jinja2.Environment]) -> None:
        self.asked: list[whence.Stack] = []
        self.labels: dict[str, str] = {}
        loader = jinja2.FileSystemLoader(PAGES)
        self.environment = environment(loader=loader, autoescape=True)
        # Globals, since macros that are imported see no other names.
        self.environment.globals.update(
            price=self.price, opening_hours=lambda: "9 to 5, and on Sundays"
        )

    def price(self, item: Item) -> str:
        """Return a label, and note which line of which template wants it."""
        self.asked.append(whence.capture())
        cents = int(item["cents"])
        label = f"{cents // 100}.{cents % 100:02} €"
        self.labels[str(item["name"])] = label
        return label

    def render(self, items: Sequence[Item]) -> str:
        """Return the page of an order."""
        page: str = self.environment.get_template("order.html").render(
            items=items, number=7
        )
        return page


def lines_of_templates(stack: whence.Stack) -> list[whence.Frame]:
    """Return what of a stack is in templates, innermost first."""
    return [frame for frame in stack.frames if frame.kind == "generated"]


def who_asked() -> list[whence.Frame]:
    """Return the lines of templates that led to a function, from its own stack."""
    shop = Shop(jinja2.Environment)
    shop.render(ITEMS)
    return lines_of_templates(shop.asked[0])


def fail() -> LoweredError:
    """Return the error of an item without a price: it has the lines that wanted it."""
    shop = Shop(HandledEnvironment)
    try:
        shop.render(INCOMPLETE)
    except LoweredError as error:
        return error
    message = "the order has an item without a price"
    raise AssertionError(message)


def where_time_went(path: Path) -> list[Spent]:
    """Return the functions of templates, those that took longest first."""
    shop = Shop(jinja2.Environment)
    shop.render(ITEMS)  # templates are compiled when they are first needed
    with whence.record(path, overwrite=True):
        shop.render(ITEMS * 500)
    with whence.open(path) as recording:
        spent = [
            Spent(f.filename, f.line, f.name or "?", f.calls, f.total)
            for f in recording.functions
            if f.filename is not None and Path(f.filename).parent == PAGES
        ]
    return sorted(spent, key=lambda function: -function.total)


def who_keeps_memory(path: Path) -> list[whence.Frame]:
    """Return the lines of templates behind a label that is still there."""
    shop = Shop(jinja2.Environment)
    with whence.record(path, calls=False, memory=True, overwrite=True):
        shop.render(ITEMS)
        stack = whence.memory.stack_of(shop.labels["tea"])
    return [] if stack is None else lines_of_templates(stack)


def main() -> None:
    print("The first price was asked for at")
    for frame in who_asked():
        print(f"  {Path(frame.filename).name}:{frame.line}")

    error = fail()
    print(f"\n{error}")
    print(*error.__notes__, sep="\n")

    with tempfile.TemporaryDirectory() as folder:
        print("\nTime in templates:")
        for function in where_time_went(Path(folder, "time.whence")):
            where = f"{Path(function.filename).name}:{function.line}"
            took = f"{function.total / 1e6:.1f} ms"
            print(f"  {where:15} {function.name:25} {took:>9}")
        print("\nA label that is still in memory was made for")
        for frame in who_keeps_memory(Path(folder, "memory.whence")):
            print(f"  {Path(frame.filename).name}:{frame.line}")


if __name__ == "__main__":
    main()
