"""Settings files: the shipped one is checked offline, and all problems are reported."""

from pathlib import Path

import numpy as np
import pytest

from analysis.unlearning_audit.evidence import AUDITED, HOLDOUT
from inject.builtin_files import AUDITS, EXPERIMENTS
from inject.errors import InputErrors
from spikein.config.overrides import read_settings
from spikein.unlearning_audit.comparable import guessing_loss
from spikein.unlearning_audit.request import AuditSettings
from tests.analysis.unlearning_audit.made import chunk


def test_the_papers_audit_is_read_and_takes_the_users_books(tmp_path: Path):
    settings = read_settings(
        AuditSettings, AUDITS.find("unlearning-whp"), [f"books={tmp_path}"], {"samples": 3}
    )
    assert settings.original == "meta-llama/Llama-2-7b-chat-hf"
    assert settings.unlearned == "microsoft/Llama2-7b-WhoIsHarryPotter"
    assert (settings.texts, settings.samples) == (str(tmp_path), 3)
    assert (settings.chunk_words, settings.prompt_words) == (512, 200)
    assert settings.band == pytest.approx((1 / 1.15, 1.15))
    assert "unlearning-whp" not in EXPERIMENTS.files()


def test_all_problems_are_reported_at_once(tmp_path: Path):
    path = tmp_path / "audit.yaml"
    path.write_text("original: a\nunlearnd: b\ntexts: ${book}\nsamples: -1\nband: [2, 1]\n")
    with pytest.raises(InputErrors) as refused:
        read_settings(AuditSettings, path, [], {})
    text = str(refused.value)
    for message in ("Did you mean 'unlearned'?", "audit.yaml:3", "book", "samples", "audit.yaml:4"):
        assert message in text


def test_guessing_loss_counts_tokens_of_the_other_texts():
    parts = (AUDITED, HOLDOUT, HOLDOUT)
    chunks = [chunk(at, part=part) for at, part in enumerate(parts)]
    # The others of the second text are 1, 2 and 5, three kinds; of the third 1 twice, 2 and 3.
    second = (np.log((1 + 3 / 9) / 6) + np.log((3 / 9) / 6)) / 2
    third = np.log((3 / 9) / 7)
    expected = pytest.approx(-(second + third) / 2, abs=1e-6)
    assert guessing_loss(chunks, [[1, 2], [1, 3], [5]], 9) == expected
