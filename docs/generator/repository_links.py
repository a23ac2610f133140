"""Links between the site's pages and files of the repository."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[2]
REPOSITORY_PAGES: Final = {
    "ARCHITECTURE.md": "explanation/architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "specs/CLAUSES.md": "reference/clauses.md",
    "specs/DEVIATIONS.md": "reference/deviations.md",
    "specs/FILES.md": "reference/file-checks.md",
    "traces/bundled/README.md": "reference/bundled-recordings.md",
}
"""Files of the repository that are pages of the site."""

_LINK: Final = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_FENCE: Final = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def translate_links(markdown: str, source: str, site: str) -> str:
    """Return a page with its relative links translated to the site's addresses.

    A link to a file of the repository that is no page of the site becomes the file's path in code type.

    Args:
        markdown: Text of the page.
        source: Path of the page in the repository, with slashes.
        site: Path of the page in the site's sources.
    """
    pieces = _FENCE.split(markdown)
    return "".join(
        piece if piece.startswith("```") else _LINK.sub(lambda link: _translated(link, source, site), piece)
        for piece in pieces
    )


def _translated(link: re.Match[str], source: str, site: str) -> str:
    image, text, target = link.groups()
    path, _, anchor = target.partition("#")
    if not path or ":" in path:
        return link.group()
    found = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    # The pages on findings are a folder.
    found = found.replace("docs/findings.md", "docs/findings/index.md")
    page = REPOSITORY_PAGES.get(found) or (found.removeprefix("docs/") if found.startswith("docs/") else None)
    if page is not None:
        relative = posixpath.relpath(page, posixpath.dirname(site) or ".")
        return f"{image}[{text}]({relative}{'#' if anchor else ''}{anchor})"
    if (_ROOT / found).exists():
        return text if text.strip("`") == found else f"{text} (`{found}`)"
    return link.group()
