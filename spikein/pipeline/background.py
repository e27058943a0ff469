"""The steps of an experiment's background: its tokenizer, and its clean corpus."""

from collections.abc import Sequence

from inject.corpus.background.registry import sources_identity
from inject.corpus.tokenizer_step import tokenizer_step
from inject.digest import canonical
from inject.formats.import_step import import_step
from inject.overlap.corpus_step import corpus_step
from inject.overlap.searched_rows import SearchedRows
from inject.settings import plain
from inject.step import Step
from spikein.config.schema import Experiment
from train.models.model_tokenizer import copied_tokenizer_step
from train.settings import TokenizerTraining


def background_steps(
    experiment: Experiment, *, tokens: int, seeds: Sequence[int]
) -> tuple[Step, Step]:
    """Return the tokenizer and the corpus; reads the sources to name them.

    Args:
        experiment: the experiment.
        tokens: length of the corpus.
        seeds: of all arms.
    """
    model, given = experiment.model, experiment.corpus
    named = sources_identity(given.sources)
    if isinstance(model.tokenizer, TokenizerTraining):
        tokenizer = tokenizer_step(model.tokenizer.train, given.sources, named, seed=given.seed)
    else:
        tokenizer = copied_tokenizer_step(model)
    searched = SearchedRows(
        contaminants=experiment.contaminants, seeds=tuple(seeds), rules=experiment.audit
    )
    if given.imported is not None:
        corpus = import_step(
            given.imported, tokenizer, tokens=tokens, seed=given.seed, searched=searched
        )
    else:
        corpus = corpus_step(
            given.sources,
            named,
            tokenizer,
            tokens=tokens,
            seed=given.seed,
            searched=searched,
            label=given.label(),
        )
    return tokenizer, corpus


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
