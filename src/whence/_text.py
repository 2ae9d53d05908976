"""Texts out of recordings, and names of files, which may hold anything."""

import os


def printable(text: str) -> str:
    """Write control characters, lone surrogates and the like as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shell_word(name: str) -> str:
    """Write the name of a file as a shell wants it, in printable characters."""
    if name.startswith("-"):  # which would be an option
        name = f"./{name}"
    if all(c.isalnum() or c in "_-./%+=:@" for c in name):
        return name
    if name.isprintable():
        return "'" + name.replace("'", "'\"'\"'") + "'"
    return "$'" + "".join(map(_in_dollar_quotes, name)) + "'"


def _in_dollar_quotes(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(character))
