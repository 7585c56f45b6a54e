"""What the site needs besides the pages: figures from results/, links into the source as words."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
OUTSIDE = re.compile(r"(?<!!)\[([^\]]*)\]\(\.\./[^)]*\)")


def on_files(files: Files, config: Any) -> Files:
    """The figures of the paper lie beside its numbers."""
    for path in sorted((ROOT / "results" / "figures").glob("*.png")):
        files.append(File.generated(config, f"figures/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A site has no source tree: a link to a file there is its name."""
    told = OUTSIDE.sub(r"`\1`", markdown.replace("../results/figures/", "figures/"))
    return re.sub(r"(?<!`)``(?!`)", "`", told)


def on_config(config: Any) -> Any:
    """The search of a page opened as a file loads its worker from here, not from the network."""
    config.extra["polyfills"] = ["iframe-worker.js"]
    return config
