"""Hooks of MkDocs: add the generated pages, and translate links to files of the repository.

Some pages are files outside of docs/ (REPOSITORY_PAGES), others are generated from the code: the command line, and a
page and a diagram for each protocol. Nothing generated is written into the repository.
"""

from __future__ import annotations

import sys
from pathlib import Path

from action_diagram import action_diagram
from cli_page import cli_page
from fencepost.model.core.registry import REGISTRY
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from protocol_page import overview_page, protocol_page
from repository_links import REPOSITORY_PAGES, translate_links
from tiers_page import tiers_page

ROOT = Path(__file__).parents[2]
_SOURCES: dict[str, str] = {site: source for source, site in REPOSITORY_PAGES.items()}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and images."""
    generated: dict[str, str] = {
        site: (ROOT / source).read_text(encoding="utf-8") for source, site in REPOSITORY_PAGES.items()
    }
    # MkDocs restores the path after it has loaded the hooks.
    sys.path.insert(0, str(ROOT))
    from tests.conformance.kafka_matrix import page as kafka_matrix_page

    generated["reference/cli.md"] = cli_page()
    generated["reference/nightly-tests.md"] = tiers_page()
    generated["reference/kafka-matrix.md"] = kafka_matrix_page()
    generated["reference/protocols/index.md"] = overview_page()
    for name in sorted(REGISTRY):
        registration = REGISTRY[name]
        if registration.package.startswith("fencepost."):
            generated[f"reference/protocols/{name}.md"] = protocol_page(registration)
            generated[f"images/actions-{name}.svg"] = action_diagram(registration.protocol)
    for path, content in sorted(generated.items()):
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Translate the links of a page that leave docs/, or that are relative to a file outside of it."""
    path = page.file.src_uri
    return translate_links(markdown, _SOURCES.get(path, f"docs/{path}"), path)
