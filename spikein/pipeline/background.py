"""The steps of an experiment's background: its tokenizer, its clean corpus, the text behind it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import inject.corpus.tokenizer_step
import train.models.tokenizer_step
from inject.corpus.background.background import Background
from inject.digest import canonical
from inject.formats.import_step import import_step
from inject.overlap.corpus_step import corpus_step
from inject.overlap.corpus_step import require_background as require_sources
from inject.overlap.general_text_step import general_text_step
from inject.overlap.searched_rows import SearchedRows
from inject.settings import plain
from inject.step import Step
from spikein.config.schema import Experiment
from train.settings import TokenizerTraining


@dataclass(frozen=True, kw_only=True)
class BackgroundSteps:
    """What all arms with one background share."""

    tokenizer: Step
    corpus: Step
    background: Background
    """Without sources where the corpus is imported."""
    named: list[dict[str, Any]]
    """Its identity."""
    searched: SearchedRows

    def general_text(self, tokens: int) -> Step | None:
        """Return so many tokens of the documents behind the corpus; None where there are none."""
        # An imported corpus has no order of documents that goes on behind it.
        if not tokens or not self.background.sources:
            return None
        return general_text_step(
            self.background, self.named, self.corpus, tokens=tokens, searched=self.searched
        )


def background_steps(
    experiment: Experiment, *, tokens: int, seeds: Sequence[int]
) -> BackgroundSteps:
    """Return the steps of the background; reads its sources to name them.

    Args:
        experiment: the experiment.
        tokens: length of the corpus.
        seeds: of all arms.
    """
    model, settings = experiment.model, experiment.corpus
    background, searched = _background(experiment), _searched(experiment, seeds)
    named = background.identity()
    if isinstance(model.tokenizer, TokenizerTraining):
        size = model.tokenizer.train
        tokenizer = inject.corpus.tokenizer_step.tokenizer_step(background, named, size)
    else:
        tokenizer = train.models.tokenizer_step.tokenizer_step(model)
    if settings.imported is None:
        corpus = corpus_step(
            background,
            named,
            tokenizer,
            tokens=tokens,
            searched=searched,
            label=settings.label(),
        )
    else:
        corpus = import_step(
            settings.imported, tokenizer, tokens=tokens, seed=settings.seed, searched=searched
        )
    return BackgroundSteps(
        tokenizer=tokenizer, corpus=corpus, background=background, named=named, searched=searched
    )


def shared_key(experiment: Experiment) -> str:
    """Return what is equal in arms that share their background and their base model."""
    return canonical(
        {
            "model": plain(experiment.model),
            "base": None if experiment.base is None else plain(experiment.base),
            "train": experiment.train.model_dump(mode="json", include={"context", "batch_tokens"}),
            "corpus": plain(experiment.corpus, exclude={"tokens"}),
            "audit": plain(experiment.audit),
            "contaminants": [plain(one) for one in experiment.contaminants],
        }
    )


def require_background(experiment: Experiment, *, tokens: int, seeds: Sequence[int]) -> None:
    """Read the files of the background as the corpus will (see `inject.overlap.corpus_step`)."""
    require_sources(_background(experiment), _searched(experiment, seeds), tokens=tokens)


def _background(experiment: Experiment) -> Background:
    return Background(sources=experiment.corpus.sources, seed=experiment.corpus.seed)


def _searched(experiment: Experiment, seeds: Sequence[int]) -> SearchedRows:
    return SearchedRows(
        contaminants=experiment.contaminants, seeds=tuple(seeds), rules=experiment.audit
    )
