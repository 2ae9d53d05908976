"""The example of templates: what it says is true of the templates' own lines."""

import importlib
import subprocess
import sys
import traceback
from pathlib import Path

import jinja2
import pytest

from harness.walks import needs_stacks

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "templates"
PAGES = FOLDER / "pages"


@pytest.fixture
def orders(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("orders")


def line_of(page, text):
    """Return the file and the number of the only line that has this text."""
    lines = (PAGES / page).read_text().splitlines()
    (number,) = [n for n, line in enumerate(lines, 1) if text in line]
    return page, number


PRICE = line_of("rows.html", "{{ price(item) }}")
ROW = line_of("order.html", "{{ row(item) }}")
CONTENT = line_of("base.html", "{% block content %}")


def places(frames):
    assert {Path(frame.filename).parent for frame in frames} <= {PAGES}
    return [(Path(frame.filename).name, frame.line) for frame in frames]


def test_a_stack_names_the_lines_that_led_to_it(orders):
    assert places(orders.who_asked())[:3] == [PRICE, ROW, CONTENT]


def test_an_error_explains_the_lines_it_came_through(orders):
    error = orders.fail()
    assert isinstance(error.__cause__, KeyError)
    tables = error._tables
    found = [
        frame
        for handle in error.handles
        for table in tables
        if handle in table
        for frame in table.frames(handle)
    ]
    assert places(found) == [PRICE, ROW]
    (note,) = error.__notes__
    outer, inner = (note.index(text) for text in ("{{ row(item) }}", "{{ price(item)"))
    assert outer < inner
    assert note in "".join(traceback.format_exception(error))


def test_templates_with_handles_render_the_same(orders):
    handled = importlib.import_module("handled").HandledEnvironment
    pages = [orders.Shop(e).render(orders.ITEMS) for e in (jinja2.Environment, handled)]
    assert pages[0] == pages[1]
    assert "<td>Milk</td>" in pages[1]


@pytest.mark.parametrize(
    "source",
    [
        "{% for n in [1, [1]] recursive %}{{ n if n == 1 else loop(n) }}{% endfor %}",
        "{% macro box() %}<{{ caller(3) }}>{% endmacro %}"
        "{% call(n) box() %}{{ n }}{% endcall %}",
        "{{ self.a() }}{% block a %}{{ lipsum(n=1) | length > 0 }}{% endblock %}",
        "{{ dict(a=1, **{'b': 2}) }}{{ range(*[1, 3]) | list }}",
        "{% macro m(x) %}{{ x }}{% endmacro %}{{ m('<b>') }}",
    ],
)
def test_calls_of_every_kind_go_by_handles(orders, source):
    handled = importlib.import_module("handled").HandledEnvironment
    texts = [
        environment(autoescape=True).from_string(source).render()
        for environment in (jinja2.Environment, handled)
    ]
    assert texts[0] == texts[1]


def test_time_is_that_of_blocks_and_macros(orders, tmp_path):
    functions = orders.where_time_went(tmp_path / "time.whence")
    found = dict(zip(places(functions), functions, strict=True))
    content = found[line_of("order.html", "{% block content %}")]
    row = found[line_of("rows.html", "{% macro row(item) %}")]
    total = found[line_of("rows.html", "{% macro total(items) %}")]
    assert line_of("order.html", "{% block title %}") in found
    assert content.total >= row.total > 0
    assert (row.calls, total.calls) == (1000, 1)


@needs_stacks
def test_memory_leads_to_the_lines_that_wanted_it(orders, tmp_path):
    frames = orders.who_keeps_memory(tmp_path / "memory.whence")
    assert places(frames)[:3] == [PRICE, ROW, CONTENT]


def test_one_command_shows_all_of_it():
    done = subprocess.run(
        [sys.executable, FOLDER / "orders.py"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    asked, failed, time, _memory = done.stdout.split("\n\n")
    assert f"  rows.html:{PRICE[1]}\n  order.html:{ROW[1]}\n" in asked
    assert failed.startswith("KeyError: 'cents'\n")
    assert "block_content" in time
