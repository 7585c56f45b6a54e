"""What of a page is prose: paragraphs and list items, without code, tables and headings."""

import re

LINK = re.compile(r"\]\(([^)\s]+)\)")
ITEM = re.compile(r"^\s*([-*+]|\d+\.)\s+")


def paragraphs(page: str) -> list[str]:
    """Each as one line."""
    found, now, fenced = list[str](), list[str](), False

    def end() -> None:
        if now:
            found.append(" ".join(now))
            now.clear()

    for line in page.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
            end()
        elif fenced:
            continue
        elif not line.strip() or line.lstrip().startswith(("#", "|", "<!--", ":::")):
            end()
        else:
            if ITEM.match(line):
                end()
            now.append(line.strip())
    end()
    return found


def shown_length(paragraph: str) -> int:
    """Signs that a reader sees: of a link its words alone."""
    return len(LINK.sub("]", paragraph))
