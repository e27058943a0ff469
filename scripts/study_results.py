"""A page of docs/results/ from a finished run: its tables and figures, between two marks.

`python -m scripts.study_results RUN [--into docs/results] [--figures copies,sweep] [--keep TITLE]`
writes `NAME.md`, the run's pictures next to it, and all tables to `docs/data/results-NAME.csv`; the
table or picture to keep stays on the page. Numbers come from the run's
`findings.parquet` without further computation; manual text outside the marks is kept. Takes
under a second.
"""

import argparse
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.findings import as_table, questions, read_findings
from scripts.study_accuracy import score_correction, task_accuracy
from scripts.study_cells import arm_name, interval, markdown, sides_per_seed
from scripts.study_pages import page_with, shelved

FIRST_AXIS_AFTER = "model"
"""Columns of the metrics before this one are the swept axes."""


def distinguishing_axes(metrics: pd.DataFrame, axes: Sequence[str], by: Sequence[str]) -> int:
    """Return the number of axes that distinguish the models without members."""
    others = metrics[metrics["model"] != "contaminated"][[*by]].drop_duplicates()
    further = [name for name in by if name not in axes]
    counts = range(len(axes) + 1)
    return next(n for n in counts if not others.duplicated([*axes[:n], *further]).any())


def table_of(
    metrics: pd.DataFrame, *, axes: Sequence[str], by: Sequence[str], across: str, head: str
) -> str:
    """Return one table: a row for each combination of `by`, a column for each value of `across`."""
    columns = list(dict.fromkeys(metrics[across]))
    n_shown = distinguishing_axes(metrics, axes, by)
    rows = []
    for key, part in metrics.groupby([*by], sort=False, dropna=False):
        values = key if isinstance(key, tuple) else (key,)
        named = dict(zip(by, values, strict=True))
        arm = arm_name([named[axis] for axis in axes], named["model"], n_shown=n_shown)
        others = [str(named[name]) for name in by if name not in (*axes, "model")]
        cells = {row[across]: interval(row) for _, row in part.iterrows()}
        counts = part[["n_members", "n_nonmembers", "n_seeds"]].max()
        rows.append(
            [
                *(arm, *others),
                sides_per_seed(counts),
                *(f"{counts['n_seeds']:.0f}",),
                *(cells.get(column, "–") for column in columns),
            ]
        )
    further = [name for name in by if name not in (*axes, "model")]
    return markdown(
        [
            head,
            *further,
            "members / non-members per seed",
            "seeds",
            *(f"`{name}`" for name in columns),
        ],
        rows,
    )


def written(run: Path, *, into: Path, figures: Sequence[str], by_dataset: Sequence[str]) -> str:
    """Return the generated part of a run's page, and copy its pictures next to the page."""
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    findings = read_findings(run)
    metrics = as_table(findings, "metrics").to_pandas()
    axes = list(metrics.columns[: list(metrics.columns).index(FIRST_AXIS_AFTER)])
    metrics = metrics[
        metrics["model"].isin(["contaminated", "base"])
        & (metrics["selection"] == "default")
        & (metrics["variant"] == "all")
    ]
    auc = metrics[metrics["metric"] == "auc"]
    whole = auc[(auc["dataset"] == "all") & (auc["copies"] == "all")]
    head = ", ".join(axes) or "model"
    arm = [*axes, "model"]
    parts = [
        f"Run `{record['id']}` of {record['finished'][:10]}, spikein {record['version']}"
        f"{_claims_note(record)}.",
        "## AUC by arm and detector",
        "Default settings, `test` rows, all datasets, 95 % intervals.",
        table_of(whole, axes=axes, by=arm, across="detector", head=head),
    ]
    doses = auc[(auc["dataset"] == "all") & (auc["model"] == "contaminated")]
    if doses["copies"].nunique() > 2:
        parts += [
            "## AUC by copies",
            "Copies that the model read; the non-members are the same in each row of an arm.",
            table_of(
                doses[doses["copies"] != "all"],
                axes=axes,
                by=[*arm, "copies"],
                across="detector",
                head=head,
            ),
        ]
    for detector in by_dataset:
        rows = auc[(auc["detector"] == detector) & (auc["copies"] == "all")]
        if len(rows) and rows["dataset"].nunique() > 1:
            parts += [
                f"## `{detector}` by dataset",
                table_of(rows, axes=axes, by=arm, across="dataset", head=head),
            ]
    rates = metrics[
        metrics["metric"].isin(["tpr@0.05"])
        & (metrics["dataset"] == "all")
        & (metrics["copies"] == "all")
        & (metrics["model"] == "contaminated")
    ]
    if rates["value"].notna().any():
        parts += [
            "## True-positive rate at 5 % false positives",
            table_of(rates, axes=axes, by=arm, across="detector", head=head),
        ]
    parts += effects(as_table(findings, "factors").to_pandas(), whole, axes)
    if "claims" in questions(findings):
        parts += claims(as_table(findings, "claims").to_pandas())
    if "accuracy" in questions(findings):
        parts += task_accuracy(as_table(findings, "accuracy").to_pandas(), axes)
    if "correction" in questions(findings):
        parts += score_correction(as_table(findings, "correction").to_pandas(), axes)
    for name in figures:
        picture = run / "figures" / f"{name}.png"
        target = into / "images" / f"{into_name(record)}-{name}.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(picture, target)
        parts.append(f"![{name.replace('-', ' ')}](images/{target.name})")
    return "\n\n".join(parts)


def effects(factors: pd.DataFrame, whole: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    """Return the effect of each swept factor: differences between arms, and slopes over numbers.

    Args:
        factors: the run's findings about the factors.
        whole: the AUCs of the arms.
        axes: the columns of swept values.
    """
    pooled = factors[factors["dataset"] == "all"]
    contrasts = pooled[pooled["kind"] == "contrast"]
    slopes = pooled[
        (pooled["kind"] == "response")
        & (pooled["term"] == "slope")
        & pooled["factor"].isin([axis.removeprefix("sweep.") for axis in axes])
        & pooled["value"].notna()
    ]
    # A slope is fitted to the rows of several arms, which have the same members.
    arms = [arms_of(whole, axes, slope) for _, slope in slopes.iterrows()]
    slopes = slopes.assign(n_members=slopes["n_members"] / arms)
    parts = []
    if len(contrasts):
        parts += [
            "## Differences of AUC between arms",
            "Settings chosen on `tune`, paired by row and seed, all else being equal; of one "
            "detector all intervals hold at once (95 %).",
            effect_table(contrasts, [*axes, "factor", "level", "versus"], difference_name(axes)),
        ]
    if len(slopes):
        parts += [
            "## Slope of the probit of AUC by doubling",
            "Settings chosen on `tune`; each interval for itself (95 %). That of copies is by "
            "doubling of 1 + copies.",
            effect_table(slopes, [*axes, "factor"], slope_name(axes)),
        ]
    return parts


def claims(rows: pd.DataFrame) -> list[str]:
    """Return the verdict on each claim and detector.

    Args:
        rows: the run's findings about claims.
    """
    head = ["claim", "detector", "comparison", "effect", "margin", "verdict"]
    lines = [
        [
            *(row["claim"], f"`{row['detector']}`", f"{row['comparison']}, {row['measure']}"),
            interval(row, sign="" if row["kind"] == "spread" else "+", digits=3),
            *(f"{row['margin']:.3g}", row["verdict"], f"{row['n_seeds']:.0f}"),
            f"{row['members_per_seed']:.0f} / {row['nonmembers_per_seed']:.0f}",
        ]
        for _, row in rows.iterrows()
    ]
    return [
        "## Claims and verdicts",
        "Default settings, `test` rows that the claims' detectors score; Student's t over seeds, "
        "all comparisons together (95 %, Bonferroni); a spread has a χ² interval of its own.",
        markdown([*head, "seeds", "members / non-members per seed"], lines),
    ]


def arms_of(whole: pd.DataFrame, axes: Sequence[str], slope: pd.Series) -> int:
    """Return the number of arms that a slope is fitted to."""
    arms = whole[whole["model"] == "contaminated"]
    for axis in axes:
        if pd.notna(slope[axis]) and slope[axis]:
            arms = arms[arms[axis] == slope[axis]]
    return len(arms[[*axes]].drop_duplicates())


Namer = Callable[[dict[str, str]], str]


def difference_name(axes: Sequence[str]) -> Namer:
    """Return the names of differences: the two values, and those of the other axes."""

    def name(key: dict[str, str]) -> str:
        fixed = fixed_axes(axes, key)
        return f"{key['factor']}: {key['level']} less {key['versus']}{fixed}"

    return name


def slope_name(axes: Sequence[str]) -> Namer:
    """Return the names of slopes: the factor, and the values of the other axes."""
    return lambda key: f"{key['factor']}{fixed_axes(axes, key)}"


def fixed_axes(axes: Sequence[str], key: dict[str, str]) -> str:
    """Return the unchanged swept values as the end of a name."""
    fixed = [f"{axis.removeprefix('sweep.')} {key[axis]}" for axis in axes if key[axis]]
    return f" ({', '.join(fixed)})" if fixed else ""


def effect_table(rows: pd.DataFrame, by: Sequence[str], name: Namer) -> str:
    """Return effects, a line for each, a column for each detector."""
    detectors = list(dict.fromkeys(rows["detector"]))
    digits = 2 if rows["value"].abs().max() >= 0.01 else 4
    lines = []
    for values, part in rows.groupby([*by], sort=False):
        key = dict(zip(by, (str(value) for value in values), strict=True))
        cells = {
            row["detector"]: interval(row, sign="+", digits=digits) for _, row in part.iterrows()
        }
        counts = part[["n_members", "n_seeds"]].max()
        lines.append(
            [
                *(
                    name(key),
                    f"{counts['n_members'] / counts['n_seeds']:.0f}",
                    f"{counts['n_seeds']:.0f}",
                ),
                *(cells.get(detector, "–") for detector in detectors),
            ]
        )
    return markdown(
        ["effect", "members per seed", "seeds", *(f"`{column}`" for column in detectors)], lines
    )


def _claims_note(record: dict[str, Any]) -> str:
    digest = record.get("claims")
    return f", claims `{digest[:12]}`" if digest else ""


def into_name(record: dict[str, Any]) -> str:
    """Return the name of a run's page."""
    return str(record["name"])


def main() -> None:
    """Write one page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="the folder of a finished run")
    parser.add_argument("--into", type=Path, default=Path("docs/results"))
    parser.add_argument("--figures", default="", help="names of pictures, with commas")
    parser.add_argument(
        "--keep", default="AUC by arm and detector", help="the table or picture that stays"
    )
    parser.add_argument("--by-dataset", default="min_k,reference", help="detectors, with commas")
    options = parser.parse_args()
    record = json.loads((options.run / "run.json").read_text(encoding="utf-8"))
    page = options.into / f"{into_name(record)}.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    before = page.read_text(encoding="utf-8") if page.is_file() else f"# {record['name']}\n\n"
    content = written(
        options.run,
        into=options.into,
        figures=[name for name in options.figures.split(",") if name],
        by_dataset=[name for name in options.by_dataset.split(",") if name],
    )
    tables = options.into.parent / "data" / f"results-{page.stem}.csv"
    stays = shelved(content, file=tables, keep={options.keep})
    page.write_text(page_with(before, stays), encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
