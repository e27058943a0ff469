"""The methods as paragraphs for a paper, with the sources of the methods.

Every value is read from the run: the settings of its arms, what its detectors declare, the versions
and the digests of its artifacts. A setting that differs between arms appears with all its values.
Nothing is left to a default that a reader would have to look up.
"""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from analysis.dataset_detectors.detector import asked_dataset_detectors
from analysis.page.inputs import ArmSettings, PageInputs
from analysis.page.parts import CopyButton, Fold, Note, Section, answer
from analysis.page.sections.experiment import pretrained_name, values_text
from analysis.page.unlearning.methods import unlearning_paragraphs
from analysis.references import STATISTICS, BibliographyEntry, cited, references_text
from detect.detector_table import DetectorFacts
from detect.task_accuracy.prompts import FORMS
from inject.examples.contaminant import Contaminant, PoolSettings
from inject.files import write_text
from train.models.shapes import load_shape, parameter_count
from train.settings import BaseSettings, TokenizerTraining, TrainSettings

if TYPE_CHECKING:
    from jinja2 import Template

METHODS_FILE = "methods.md"
REFERENCES_FILE = "references.bib"
_MOST_MODELS = 4
"""So many models' digests are in the text."""


class Methods(NamedTuple):
    """The paragraphs, and what they cite."""

    name: str
    """Of the experiment."""
    paragraphs: tuple[str, ...]
    references: tuple[BibliographyEntry, ...]

    @property
    def bibtex(self) -> str:
        """The content of `references.bib`."""
        return references_text(self.references)


def describe_methods(inputs: PageInputs) -> Methods:
    """Return the methods of a run."""
    settings = inputs.analysis_settings
    forgotten = () if inputs.unlearning is None else inputs.unlearning.methods
    whole = [detector.name for detector in asked_dataset_detectors(settings.dataset_detectors)]
    texts = [contaminant for arm in inputs.settings for contaminant in arm.contaminants]
    accuracy = settings.task_accuracy and any(text.dataset in FORMS for text in texts)
    conditions = {"datasets": whole, "unlearning": forgotten, "accuracy": accuracy}
    topics = [name for name in STATISTICS if conditions.get(name, True)]
    values = {
        **_values_of_arms(inputs.settings, inputs.seeds),
        **_software(inputs),
        "unlearning": "".join(unlearning_paragraphs(forgotten)),
        "detectors": [_detector(detector) for detector in inputs.detectors],
        "level": percent(settings.confidence),
        "seeds": len(inputs.seeds),
        "rates": ", ".join(f"{rate * 100:g} %" for rate in settings.false_positive_rates),
        "false_discovery_rate": f"{settings.false_discovery_rate:g}",
        "zero_copies": settings.zero_copies,
        "accuracy": accuracy,
        "whole": whole,
    }
    names = [detector.name for detector in inputs.detectors]
    forgetting = list(dict.fromkeys(detector.method for detector in forgotten))
    references = cited(names, whole, topics, forgetting)
    paragraphs = (template.render(values) for template in _paragraph_templates())
    return Methods(inputs.name, tuple(filter(None, paragraphs)), references)


@cache
def _paragraph_templates() -> "tuple[Template, ...]":
    """Return the paragraphs of `methods.txt.j2`; what is filled in stays as it is."""
    from jinja2 import Environment, StrictUndefined

    text = (Path(__file__).parent / "methods.txt.j2").read_text(encoding="utf-8")
    # A text for Markdown, which the page escapes as any other.
    environment = Environment(undefined=StrictUndefined, autoescape=False)
    return tuple(environment.from_string(" ".join(part.split())) for part in text.split("\n\n"))


def write_methods(folder: Path, methods: Methods) -> None:
    """Write `methods.md` and `references.bib` into a folder."""
    parts = [f"# Methods of {methods.name}", *methods.paragraphs]
    parts.append(f"The sources are in `{REFERENCES_FILE}`.")
    write_text(folder / METHODS_FILE, "\n\n".join(parts) + "\n")
    write_text(folder / REFERENCES_FILE, methods.bibtex)


def methods_section(methods: Methods, *, linked: bool) -> Section | None:
    """Return the section of a page; `linked` is true if the files are next to the page."""
    files = tuple((name, name) for name in (METHODS_FILE, REFERENCES_FILE))
    entries = CopyButton("methods-bibtex", "Copy the entries", [methods.bibtex], verbatim=True)
    count = len(methods.references)
    parts = [
        CopyButton("methods-text", "Copy the text", methods.paragraphs),
        Fold(f"BibTeX of the methods used: {count} entries", [entries]),
        Note("The same in", "how", files) if linked else None,
    ]
    return answer("methods", "Methods", "Methods, for a paper", "", extra=parts)


def percent(share: float) -> str:
    """Return `25 %`."""
    return f"{100 * share:.0f} %"


def _values_of_arms(arms: Sequence[ArmSettings], seeds: Sequence[int]) -> dict[str, str]:
    """Return the words for the settings of the arms, by their name in the paragraphs."""
    reads: dict[str, Callable[[ArmSettings], str]] = {
        "texts": lambda arm: "; ".join(map(_contaminant, arm.contaminants)),
        "tune_share": lambda arm: percent(arm.detect.tune_share),
        "near": lambda arm: _near_duplicates(arm.pool.near_duplicate),
        "least": lambda arm: str(arm.pool.min_tokens),
        "long": lambda arm: _long_texts(arm.pool),
        "tokens": lambda arm: f"{arm.tokens:,}",
        "background": lambda arm: arm.background,
        "copies": lambda arm: arm.copies.label(),
        "placement": lambda arm: arm.placement.label(),
        "carried": lambda arm: arm.variants.label(),
        "mode": lambda arm: _mode(arm.train),
        "start_token": lambda arm: arm.detect.bos,
        "first_token": lambda arm: _FIRST[arm.detect.score_first],
        "scored_long": lambda arm: _SCORED_LONG[arm.detect.long],
    }
    numbers = ", ".join(str(seed) for seed in seeds)
    return {
        **{name: values_text(arms, read) for name, read in reads.items()},
        "model": values_text(arms, _model, "; or "),
        "start": _start(arms),
        "models": "1 model was" if len(arms) == 1 else f"{len(arms)} models were",
        "seeded": f"with {'seed' if len(seeds) == 1 else 'the seeds'} {numbers}",
        "optimiser": _optimiser([arm.train for arm in arms]),
    }


_LONG = {
    "error": "were not allowed",
    "truncate": "were cut, on both sides alike",
    "drop": "were dropped, on both sides alike",
    "split": "were left whole",
}


def _contaminant(contaminant: Contaminant) -> str:
    """Return one dataset with its rows."""
    held_out = f" and {contaminant.held_out:,} held-out texts" if contaminant.held_out else ""
    more = [f"split {contaminant.split}"] if contaminant.split else []
    more += [f"revision {contaminant.revision}"] if contaminant.revision else []
    renamed = contaminant.name != contaminant.dataset
    source = f" ({', '.join([contaminant.dataset, *more])})" if more or renamed else ""
    return (
        f"{contaminant.name}{source}: {contaminant.members:,} members and "
        f"{contaminant.nonmembers:,} non-members{held_out}"
    )


def _long_texts(pool: PoolSettings) -> str:
    if pool.max_tokens is not None:
        return f"{pool.max_tokens} tokens {_LONG['truncate']}"
    return f"the context {_LONG[pool.long_examples]}"


def _near_duplicates(share: float | None) -> str:
    if share is None:
        return "no near-duplicates"
    return f"near-duplicates (Jaccard similarity of word 3-grams of at least {share:g})"


def _model(arm: ArmSettings) -> str:
    model = arm.model
    if model.shape is None:
        revision = f", revision {model.revision}" if model.revision else ""
        return f"The pretrained model {pretrained_name(model)}{revision}"
    shape = load_shape(model.shape)
    text = (
        f"A decoder-only transformer ({shape.architecture}) of {shape.layers} "
        f"{'layer' if shape.layers == 1 else 'layers'}, width {shape.hidden}, "
        f"{shape.heads} heads, feed-forward width {shape.intermediate}, "
        f"{'tied' if shape.tie_embeddings else 'untied'} embeddings"
    )
    if isinstance(model.tokenizer, TokenizerTraining):
        parameters = parameter_count(shape, model.tokenizer.vocab_size)
        text += (
            f" and {parameters:,} parameters; its tokenizer of {model.tokenizer.vocab_size:,} "
            "entries was trained on the background"
        )
    elif model.tokenizer:
        text += f"; tokenizer {model.tokenizer}"
    return text


def _start(arms: Sequence[ArmSettings]) -> str:
    """Return the phrase for the initial model: a base model, published or new weights."""
    bases = [arm.base for arm in arms if arm.base is not None]
    sentences = []
    if bases:
        tokens = values_text(bases, lambda base: f"{base.tokens:,}")
        seeds = values_text(bases, lambda base: str(base.seed))
        first = "A base model" if len(bases) == len(arms) else "For some arms a base model"
        sentences.append(
            f"{first} was first trained on {tokens} clean tokens (seed {seeds}: "
            f"{_optimiser(bases)}), and saw no member."
        )
    without = [arm for arm in arms if arm.base is None]
    if without:
        start = "the published weights" if without[0].model.pretrained else "new weights"
        sentences.append(f"Training started from {start}{' in the others' if bases else ''}.")
    return " ".join(sentences)


def _mode(train: TrainSettings) -> str:
    answers = ", loss only on the answers" if train.loss_on == "completion" else ""
    lora = f", rank {train.lora.rank}, alpha {train.lora.alpha}" if train.lora else ""
    return f"{train.mode}{lora}{answers}"


def _optimiser(all_of: Sequence[TrainSettings] | Sequence[BaseSettings]) -> str:
    """Return the training settings; a setting that differs between models with all its values."""
    parts = (
        lambda train: f"{train.lr:g}",
        lambda train: train.schedule,
        lambda train: percent(train.warmup) if train.warmup else "no steps",
        lambda train: str(train.epochs),
        lambda train: str(train.context) if train.context else "as many as in training",
        lambda train: f"{train.batch_tokens:,}" if train.batch_tokens else "as many as in training",
        lambda train: f"{train.weight_decay:g}",
        lambda train: f"{train.betas[0]:g}/{train.betas[1]:g}",
        lambda train: f"{train.max_grad_norm:g}" if train.max_grad_norm is not None else "no norm",
        lambda train: train.precision,
    )
    words = (
        "AdamW, learning rate {}, schedule {}, warm-up over {}, epochs {}, tokens per window {}, "
        "tokens per step {}, weight decay {}, betas {}, gradients clipped at {}, arithmetic {}"
    )
    return words.format(*(values_text(all_of, part) for part in parts))


_FIRST = {"drop": "not scored", "start_token": "scored after a start token"}
_SCORED_LONG = {
    "window": "scored in overlapping windows",
    "truncate": "cut to it",
    "error": "not allowed",
}


def _detector(detector: DetectorFacts) -> str:
    setting = "" if detector.setting in ("", "default", "-") else f"; {detector.setting}"
    grid = f"; tuned over {detector.grid_text}" if detector.grid_text else ""
    source = detector.source or "no published source"
    return f"{detector.name} ({source}{setting}{grid})"


def _software(inputs: PageInputs) -> dict[str, Any]:
    """Return the software: the code, libraries, and the digests of the artifacts."""
    artifacts = list(inputs.artifacts)
    models = [artifact for artifact in artifacts if artifact.name.startswith("model ")]
    omitted = len(models) if len(models) > _MOST_MODELS else 0
    if omitted:
        # A paper has no room for them, and the digest of the results covers all.
        artifacts = [artifact for artifact in artifacts if artifact not in models]
    return {
        "code": inputs.code,
        "libraries": ", ".join(f"{name} {version}" for name, version in inputs.libraries.items()),
        "digests": ", ".join(f"{artifact.name} {artifact.digest[:12]}" for artifact in artifacts),
        "omitted": omitted,
    }
