"""Texts out of recordings, which may hold anything."""


def printable(text: str) -> str:
    """Write control characters, lone surrogates and the like as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
