"""A program of the standard library's: it does real work on files that come with it.

It does the same each time, and calls the same functions as often.
"""

import ast
import configparser
import difflib
import io
import json
import textwrap
import threading
import tokenize
from pathlib import Path

FOLDER = Path(json.__file__).parent
FILES = ("scanner.py", "tool.py")


def work():
    for name in FILES:
        translate((FOLDER / name).read_text(encoding="utf-8"))


def work_in_threads():
    thread = threading.Thread(target=work)
    thread.start()
    work()
    thread.join()


def translate(text):
    """Take a module apart in some ways, and put it together again."""
    tree = ast.parse(text)
    written = ast.unparse(tree)
    assert ast.dump(ast.parse(written)) == ast.dump(tree)
    tokens = [list(t[:2]) for t in tokenize.generate_tokens(io.StringIO(text).readline)]
    lines = text.splitlines()
    changes = list(difflib.unified_diff(lines, written.splitlines(), lineterm=""))
    document = {"tokens": tokens, "changes": changes, "numbers": [0.5, None, True, -1]}
    packed = json.dumps(document, indent=1)  # which is written in Python, not in C
    assert json.loads(packed) == document
    parser = configparser.ConfigParser(interpolation=None, delimiters=["="])
    parser.read_dict({"files": {"lines": str(len(lines)), "text": textwrap.fill(text)}})
    parser.write(out := io.StringIO())
    return out.getvalue()
