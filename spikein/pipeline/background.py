"""The background shared by the arms of an experiment: tokenizer, clean corpus, base model."""

from collections.abc import Sequence

from inject.corpus.background.registry import sources_identity
from inject.corpus.tokenizer_step import tokenizer_step
from inject.digest import canonical
from inject.formats.import_step import import_step
from inject.overlap.corpus_step import SearchedRows, corpus_step
from inject.settings import plain
from inject.step import Step
from spikein.config.schema import Experiment
from train.models.model_node import ModelNode, pretrained_node
from train.models.model_sizes import position_count
from train.models.model_tokenizer import copied_tokenizer_step
from train.settings import TokenizerTraining, require_positions
from train.training_step import Training, base_step

Background = tuple[Step, Step, ModelNode | None]
"""What arms share whose settings of it are equal: tokenizer, corpus, and the model that saw no
contaminant."""


def background_of(experiment: Experiment, *, tokens: int, seeds: Sequence[int]) -> Background:
    """Return the steps of the background; reads the sources to name them.

    Args:
        experiment: the experiment.
        tokens: length of the corpus.
        seeds: the seeds of all arms.

    Raises:
        InputError: for a source or a model that cannot be read; as `require_positions`.
    """
    model, corpus_settings = experiment.model, experiment.corpus
    named = sources_identity(corpus_settings.sources)
    if isinstance(model.tokenizer, TokenizerTraining):
        tokenizer = tokenizer_step(
            model.tokenizer.vocab_size, corpus_settings.sources, named, seed=corpus_settings.seed
        )
    else:
        tokenizer = copied_tokenizer_step(model)
    searched = SearchedRows(
        contaminants=experiment.contaminants, seeds=tuple(seeds), rules=experiment.audit
    )
    if corpus_settings.imported is not None:
        corpus = import_step(
            corpus_settings.imported,
            tokenizer,
            tokens=tokens,
            seed=corpus_settings.seed,
            searched=searched,
        )
    else:
        corpus = corpus_step(
            corpus_settings.sources,
            named,
            tokenizer,
            tokens=tokens,
            seed=corpus_settings.seed,
            searched=searched,
            label=corpus_settings.label(),
        )
    base = _base_node(experiment, corpus)
    positions = position_count(model)
    require_positions(experiment.train.context, positions)
    if experiment.base is not None and experiment.base.context is not None:
        require_positions(experiment.base.context, positions, place="base.context")
    return tokenizer, corpus, base


def _base_node(experiment: Experiment, corpus: Step) -> ModelNode | None:
    """Return the model that saw no contaminant: trained here, or the pretrained one."""
    model, base = experiment.model, experiment.base
    if model.pretrained is not None:
        return pretrained_node(
            model.pretrained,
            revision=model.revision,
            trust_remote_code=model.trust_remote_code,
        )
    if base is None:
        return None
    training = Training(
        model=model,
        train=base.resolved(experiment.train),
        tokens=base.tokens,
        execution=experiment.training_runtime,
        seed=base.seed,
    )
    return ModelNode(step=base_step(training, corpus))


def shared_key(experiment: Experiment) -> str:
    """Return the settings that arms share if they share background and base model."""
    return canonical(
        {
            "model": plain(experiment.model),
            "base": None if experiment.base is None else plain(experiment.base),
            "train": experiment.train.model_dump(mode="json", include={"context", "batch_tokens"}),
            "corpus": plain(experiment.corpus, exclude={"tokens", "repeat"}),
            "audit": plain(experiment.audit),
            "contaminants": [plain(contaminant) for contaminant in experiment.contaminants],
        }
    )
