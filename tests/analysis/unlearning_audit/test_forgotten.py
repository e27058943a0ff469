"""The audit of an experiment's model: what may stand in its tables."""

import numpy as np

from analysis.unlearning_audit.forgotten import AuditedModel, audit_forgotten
from analysis.unlearning_audit.ratio import Band
from detect.generation.continuations import Continued
from inject.examples.example import Example, example_id

MODELS = ("original", "unlearned", "retrained")


def test_what_models_write_after_a_protected_text_is_measured_and_not_kept():
    texts = [f"one two three {at} five six seven eight" for at in range(4)]
    rows = [
        Example(
            example_id=example_id(text),
            dataset="d",
            source_id=str(at),
            group=str(at),
            text=text,
            protected=at == 2,
        )
        for at, text in enumerate(texts)
    ]
    scores = {
        name: {row.example_id: -value for row in rows}
        for name, value in zip(MODELS, (1.0, 1.1, 2.0), strict=True)
    }
    written = {
        row.example_id: Continued(
            beginning=row.text[:14], rest=row.text[14:], texts=(row.text[14:], "else")
        )
        for row in rows
    }
    given = AuditedModel(scores, scores, dict.fromkeys(MODELS, written))
    found = audit_forgotten(rows, [], given, band=Band(), rate=0.05)
    table = found.continuations.to_pylist()
    assert len(table) == 3 * 4 * 2
    for row in table:
        assert (row["text"] is None) == (row["chunk"] == 2)
    assert {row["rouge_l"] for row in table if row["chunk"] == 2} == {0.0, 1.0}
    assert np.isfinite(found.findings.remembered["unlearned"].value)
