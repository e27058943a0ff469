"""Pages of the site other than docs/*.md: the README, CONTRIBUTING, CHANGELOG, and the notebooks.

A hook of MkDocs (`hooks` in mkdocs.yml). README.md becomes the front page, so that it is written
once; notebooks become pages with the outputs that are stored in them, and are offered for
download. Links that lead out of `docs/` to one of these pages lead to it on the site; links to
other files of the repository become their plain names there.
"""

import base64
import html
import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")
_CODE = re.compile(r"(^```.*?^```\s*$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside docs/."""
    for source, target in PAGES.items():
        text = (REPOSITORY / source).read_text(encoding="utf-8")
        files.append(File.generated(config, target, content=linked(text, source)))
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            page = notebook_page(json.loads(file.content_string), posixpath.basename(file.src_uri))
            files.append(File.generated(config, file.src_uri[:-6] + ".md", content=page))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead the links that leave docs/ to their pages on the site."""
    if page.file.generated_by is not None and page.file.src_uri in PAGES.values():
        return markdown
    return linked(markdown, f"docs/{page.file.src_uri}")


def linked(text: str, source: str) -> str:
    """Return a document of the repository with its links adapted to the site.

    Args:
        text: Markdown.
        source: its path in the repository, such as `docs/training.md`.
    """
    site = dict(PAGES)
    folder = posixpath.dirname(source)
    # The page's path on the site, relative to docs/.
    place = posixpath.dirname(site.get(source, posixpath.relpath(source, "docs")))

    def moved(match: re.Match[str]) -> str:
        image, words, target, anchor = match[1], match[2], match[3], match[4] or ""
        path = posixpath.normpath(posixpath.join(folder, target))
        if path in site:
            site_path = site[path]
        elif path.startswith("docs/"):
            site_path = posixpath.relpath(path, "docs")
        else:
            return words if image == "" else match[0]
        words = _LINK.sub(moved, words)
        return f"{image}[{words}]({posixpath.relpath(site_path, place or '.')}{anchor})"

    parts = _CODE.split(text)
    # Odd parts are code, which stays unchanged.
    return "".join(part if at % 2 else _LINK.sub(moved, part) for at, part in enumerate(parts))


def notebook_page(notebook: dict[str, Any], name: str) -> str:
    """Return a notebook as a page: its texts, its code, and the outputs stored in it."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            # A notebook leads to others; a page leads to their pages.
            parts.append(source.replace(".ipynb)", ".md)"))
        elif cell["cell_type"] == "code" and source.strip():
            parts.append(f"```python\n{source.rstrip()}\n```")
            parts += [output for output in map(_output, cell["outputs"]) if output]
        if len(parts) == 1:
            parts.append(f"*This page is a notebook: [download it]({name}).*")
    return "\n\n".join(parts) + "\n"


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _block("".join(output["text"]))
    data = output.get("data", {})
    if "image/png" in data:
        # Decoded and encoded again, so that only base64 reaches the page.
        image = base64.b64encode(base64.b64decode("".join(data["image/png"]))).decode()
        words = html.escape("".join(data.get("text/plain", "figure")), quote=True)
        return f'<div class="output"><img alt="{words}" src="data:image/png;base64,{image}"></div>'
    return _block("".join(data.get("text/plain", "")))


def _block(text: str) -> str:
    if not text.strip():
        return ""
    return f'<div class="output"><pre><code>{html.escape(text.rstrip())}</code></pre></div>'
