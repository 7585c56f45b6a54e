"""Texts of users on a terminal: signs that would command it are shown instead."""

from __future__ import annotations

SEEN = {
    **{code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"},
    0x7F: "␡",
    **{code: f"\\x{code:02x}" for code in range(0x80, 0xA0)},
}
"""An escape becomes ␛, so that a text can neither move the cursor nor change the title."""


def show_controls(text: str) -> str:
    """The text with its control characters visible, all but line ends and tabulators.

    >>> show_controls("\\x1b[31mred")
    '␛[31mred'
    """
    return text.translate(SEEN)
