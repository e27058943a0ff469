"""The documents say what the code does."""

import re
from pathlib import Path

from scripts.settings_reference import DOCUMENT, document

REPOSITORY = Path(__file__).resolve().parent.parent


def test_the_reference_of_the_experiment_file_is_up_to_date():
    written = DOCUMENT.read_text(encoding="utf-8")
    assert written == document(written), "run: python -m scripts.settings_reference"


def test_links_of_the_documents_lead_somewhere():
    for page in [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
