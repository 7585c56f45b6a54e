"""How a text is shown: letter by letter, and what prints nothing as a sign."""

from __future__ import annotations


def letters_of_bytes(raw: bytes) -> list[str]:
    """The letter at each byte, "" at its further bytes, \\xc3 at a byte without a letter."""
    shown, at = list[str](), 0
    while at < len(raw):
        length = 1 + (raw[at] >= 0xC0) + (raw[at] >= 0xE0) + (raw[at] >= 0xF0)
        try:
            letter = visible(raw[at : at + length].decode())
        except UnicodeDecodeError:
            letter, length = f"\\x{raw[at]:02x}", 1
        shown += [letter, *[""] * (length - 1)]
        at += length
    return shown


def visible(text: str) -> str:
    """The text with signs that print nothing as pictures of them, or as their numbers."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else picture(sign) for sign in text)


def picture(sign: str) -> str:
    """How a sign that prints nothing is shown: ⏎ for a line end, ␇ for a bell, \\u200b."""
    code = ord(sign)
    known = {"\n": "⏎", "\t": "⇥", "\x7f": "␡"}
    if sign in known:
        return known[sign]
    return chr(0x2400 + code) if code < 0x20 else sign.encode("unicode_escape").decode()
