"""The generated part of docs/results/unlearning.md, from a finished run, between two marks.

`python -m scripts.study_unlearning RUN [--page docs/results/unlearning.md]` writes the verdicts,
copies the run's pictures next to the page, and writes all tables (measures per method, by copies,
audits) to `docs/data/results-unlearning.csv`. Numbers come from the run's `findings.parquet`
without further computation, and manual text outside the marks is kept. Takes under a second.
"""

import argparse
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from analysis.findings import as_table, read_findings
from analysis.page.table import Table
from analysis.page.unlearning.audits import audit_tables
from analysis.page.unlearning.study import UnlearningArm, by_arm
from analysis.page.unlearning.tables import study_tables, verdict_table
from analysis.page.unlearning.verdicts import judged_models, unlearning_headline
from scripts.study_cells import markdown
from scripts.study_pages import page_with, shelved

FIGURES = ("positions", "cost")


def written(run: Path, *, images: Path) -> str:
    """Return the generated part of the page, and copy the run's pictures.

    Args:
        run: a finished run's folder.
        images: where pictures go; links to them are relative to the folder above.
    """
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    findings = read_findings(run)
    measures, verdicts = (
        as_table(findings, question).to_pylist() for question in ("unlearning", "verdict")
    )
    parts = [
        f"Run `{record['id']}` of {record['finished'][:10]}, spikein {record['version']}.",
        "## Verdicts",
        unlearning_headline(judged_models(verdicts)),
        *_pictures(run, images, FIGURES),
    ]
    tables: list[Table | None] = []
    for name, rows in by_arm(measures).items():
        tables += study_tables(UnlearningArm(name=name, found=rows)).values()
    for name, rows in by_arm(verdicts, "method").items():
        tables.append(verdict_table(rows.rows, name))
    tables += audit_tables(as_table(findings, "unlearning_audits").to_pylist())
    parts += [part for table in tables if table is not None for part in _section(table)]
    return "\n\n".join(parts)


def _section(table: Table) -> list[str]:
    head = list(table.heads)
    rows = [
        [f"`{row[0]}`", *(str(cell).replace("|", "\\|") for cell in row[1:])] for row in table.rows
    ]
    return [f"## {table.title}", table.caption, markdown(head, rows)]


def _pictures(run: Path, images: Path, names: Sequence[str]) -> list[str]:
    """Copy the figures that the run has; return their links."""
    links = []
    for name in names:
        picture = run / "figures" / f"{name}.png"
        if picture.is_file():
            images.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(picture, images / picture.name)
            links.append(f"![{name.replace('-', ' ')}]({images.name}/{picture.name})")
    return links


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument("--page", type=Path, default=Path("docs/results/unlearning.md"))
    options = parser.parse_args()
    page: Path = options.page
    before = page.read_text(encoding="utf-8") if page.is_file() else "# Unlearning\n\n"
    content = written(options.run, images=page.parent / "images")
    page.parent.mkdir(parents=True, exist_ok=True)
    tables = page.parent.parent / "data" / f"results-{page.stem}.csv"
    stays = shelved(content, file=tables, keep=())
    page.write_text(page_with(before, stays), encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
