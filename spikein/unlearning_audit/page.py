"""`audit.html`: the findings, and every continued chunk with its closest continuation.

One file that needs nothing else. Everything that comes from data is escaped. A text is shown where
it is not protected and nobody asked to hide it; else its id.
"""

from html import escape
from pathlib import Path
from typing import Any

from analysis.unlearning_audit.remembered import OVERLAP
from analysis.unlearning_audit.sentence import number, percent, question_sentence, verdict
from spikein.unlearning_audit.audit import Audit
from spikein.unlearning_audit.request import AuditSettings

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;
color:#1d2330;background:#fff}table{border-collapse:collapse}td,th{padding:.2rem .8rem;
text-align:left;border-bottom:1px solid #d5d9e0;vertical-align:top}
.three{display:grid;grid-template-columns:1fr 1fr 1fr;gap:1rem}pre{white-space:pre-wrap;
font:inherit;margin:0}h3{font-size:1rem}section{margin:2rem 0}.small{color:#566072}
@media(max-width:50rem){.three{grid-template-columns:1fr}}
@media(prefers-color-scheme:dark){body{background:#14171d;color:#e4e7ec}td,th{border-color:#39404d}
.small{color:#a3adbd}}
"""


def write_page(path: Path, audit: Audit, settings: AuditSettings, *, hide_texts: bool) -> None:
    """Write the page of an audit.

    Args:
        path: of the page.
        audit: what was found.
        settings: what it was asked for.
        hide_texts: show ids in place of all texts.
    """
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Audit of {escape(settings.unlearned)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>Audit of {escape(settings.unlearned)}</h1>",
        f"<p>{escape(verdict(audit.findings))}</p>",
        _models(settings),
        _findings(audit),
    ]
    if audit.question_findings is not None:
        parts.append(f"<p>{escape(question_sentence(audit.question_findings))}</p>")
    parts += [f'<p class="small">{escape(note)}</p>' for note in audit.notes]
    parts += _chunks(audit, hide_texts)
    path.write_text("\n".join([*parts, "</body></html>", ""]), encoding="utf-8")


def _models(settings: AuditSettings) -> str:
    rows = "".join(
        f"<tr><th>{name}</th><td>{escape(model)}</td></tr>"
        for name, model in settings.models.items()
    )
    detector = f"<tr><th>score</th><td>{escape(settings.detector)}</td></tr>"
    return f"<table>{rows}{detector}</table>"


def _findings(audit: Audit) -> str:
    found = audit.findings
    calibrated = found.threshold
    rows = [
        ("Flagged by the rule", percent(found.flagged), found.flagged.caution),
        (
            f"False alarms, on {found.false_alarms_of}",
            percent(found.false_alarms),
            found.false_alarms.caution,
        ),
        *(
            (f"Remembered by the {model} model", percent(one), one.caution)
            for model, one in found.remembered.items()
        ),
        ("Remembered and not flagged", percent(found.missed), found.missed.caution),
        ("Flagged and not remembered", percent(found.wrong), found.wrong.caution),
        (
            f"Upper edge for {100 * calibrated.rate:g} % false alarms",
            number(calibrated.edge),
            calibrated.edge.caution,
        ),
        (
            "Its false alarms, cross-fitted",
            percent(calibrated.false_alarms),
            calibrated.false_alarms.caution,
        ),
        ("Flagged by that edge", percent(found.flagged_then), found.flagged_then.caution),
        ("Remembered, not flagged by it", percent(found.missed_then), found.missed_then.caution),
    ]
    body = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(value)}</td>"
        f'<td class="small">{escape(about or "")}</td></tr>'
        for name, value, about in rows
    )
    head = "<tr><th>Share of the chunks</th><th>95 % interval in brackets</th><th>About</th></tr>"
    return f"<section><h2>How far to trust the rule</h2><table>{head}{body}</table></section>"


def _chunks(audit: Audit, hide_texts: bool) -> list[str]:
    best: dict[tuple[int, str], dict[str, Any]] = {}
    for row in audit.continuations.to_pylist():
        key = row["chunk"], row["model"]
        if key not in best or row[OVERLAP] > best[key][OVERLAP]:
            best[key] = row
    rows = [row for row in audit.chunk_table.to_pylist() if row["continued"]]
    rows.sort(
        key=lambda row: best.get((row["chunk"], "unlearned"), {}).get(OVERLAP, 0), reverse=True
    )
    parts = [f"<h2>{len(rows):,} continued chunks, the longest repeated stretch first</h2>"]
    for row in rows:
        chunk = audit.chunks[row["chunk"]]
        hidden = hide_texts or chunk.protected
        said = "suspicious" if row["suspicious"] else "not suspicious"
        parts.append(
            f"<section><h3>Chunk {chunk.chunk} of {escape(chunk.text_id)}, characters "
            f"{chunk.start:,} to {chunk.stop:,}: ratio {row['ratio']:.3f}, {said}</h3>"
            if row["ratio"] is not None
            else f"<section><h3>Chunk {chunk.chunk} of {escape(chunk.text_id)}: no ratio</h3>"
        )
        shown = [("What the models were given", chunk.prompt), ("What stands there", chunk.rest)]
        closest = best.get((chunk.chunk, "unlearned"))
        if closest is not None:
            title = (
                f"The unlearned model, at its closest: {closest[OVERLAP]:g} words in a row, "
                f"ROUGE-L recall {closest['rouge_l']:.2f}"
            )
            shown.append((title, closest["text"]))
        cells = "".join(
            f'<div><p class="small">{escape(title)}</p>'
            f"<pre>{'(hidden)' if hidden else escape(text)}</pre></div>"
            for title, text in shown
        )
        parts.append(f'<div class="three">{cells}</div></section>')
    return parts
