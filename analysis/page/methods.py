"""What was done, as paragraphs that can go into a paper, with the sources of the methods.

Every value is read from the run: the settings of its arms, what its detectors declare, the versions
and the digests of its artifacts. A setting that differs between arms appears with all its values.
Nothing is left to a default that a reader would have to look up.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from analysis.dataset_detectors.registry import asked_dataset_detectors
from analysis.page.inputs import ArmSettings, PageInputs
from analysis.page.parts import Copied, Fold, Note, Part, present
from analysis.page.setup import values_text
from analysis.page.unlearning.methods import unlearning_paragraphs
from analysis.references import STATISTICS, Reference, cited, references_text
from analysis.settings import AnalysisSettings
from detect.detector_table import DetectorFacts
from detect.task_accuracy.prompts import FORMS
from inject.examples.contaminant import Contaminant
from inject.files import write_text
from train.models.shapes import load_shape, parameter_count
from train.settings import BaseSettings, TokenizerTraining, TrainSettings

METHODS_FILE = "methods.md"
REFERENCES_FILE = "references.bib"
_MOST_MODELS = 4
"""So many models' digests stand in the text."""


class Methods(NamedTuple):
    """The paragraphs, and what they cite."""

    name: str
    """Of the experiment."""
    paragraphs: tuple[str, ...]
    references: tuple[Reference, ...]

    @property
    def bibtex(self) -> str:
        """The content of `references.bib`."""
        return references_text(self.references)


def describe_methods(inputs: PageInputs) -> Methods:
    """Return the methods of a run."""
    arms, settings = inputs.settings, inputs.analysis_settings
    forgotten = () if inputs.unlearning is None else inputs.unlearning.methods
    whole = [one.name for one in asked_dataset_detectors(settings.dataset_detectors)]
    closed = any(one.dataset in FORMS for arm in arms for one in arm.contaminants)
    asked = {
        "datasets": whole,
        "unlearning": forgotten,
        "accuracy": closed and settings.task_accuracy,
    }
    absent = {name for name, there in asked.items() if not there}
    topics = [name for name in STATISTICS if name not in absent]
    paragraphs = (
        _data(arms),
        _streams(arms),
        _training(arms, inputs.seeds),
        *unlearning_paragraphs(forgotten),
        _detectors(inputs),
        _statistics(settings, len(inputs.seeds), whole, accuracy="accuracy" not in absent),
        _software(inputs),
    )
    names = [one.name for one in inputs.detectors]
    forgetting = list(dict.fromkeys(one.method for one in forgotten))
    return Methods(inputs.name, paragraphs, cited(names, whole, topics, forgetting))


def write_methods(folder: Path, methods: Methods) -> None:
    """Write `methods.md` and `references.bib` into a folder."""
    parts = [f"# Methods of {methods.name}", *methods.paragraphs]
    parts.append(f"The sources are in `{REFERENCES_FILE}`.")
    write_text(folder / METHODS_FILE, "\n\n".join(parts) + "\n")
    write_text(folder / REFERENCES_FILE, methods.bibtex)


def methods_parts(methods: Methods, *, linked: bool) -> list[Part]:
    """Return the section of a page; `linked` says whether the files lie beside the page."""
    files = tuple((name, name) for name in (METHODS_FILE, REFERENCES_FILE))
    entries = Copied("methods-bibtex", "Copy the entries", [methods.bibtex], verbatim=True)
    count = len(methods.references)
    return present(
        Copied("methods-text", "Copy the text", methods.paragraphs),
        Fold(f"BibTeX of the methods used: {count} entries", [entries]),
        Note("The same in", "how", files) if linked else None,
    )


def _data(arms: Sequence[ArmSettings]) -> str:
    texts = values_text(arms, lambda arm: "; ".join(_contaminant(one) for one in arm.contaminants))
    share = values_text(arms, lambda arm: f"{arm.detect.tune_share:.0%}".replace("%", " %"))
    near = values_text(arms, lambda arm: _near_duplicates(arm.pool.near_duplicate))
    least = values_text(arms, lambda arm: str(arm.pool.min_tokens))
    long = values_text(arms, lambda arm: _LONG[arm.pool.long_examples])
    return (
        "Data. Members and non-members were drawn at random from one pool of texts, rows of one "
        f"group (such as questions about one passage) always on one side: {texts}. Exact "
        f"duplicates, texts of fewer than {least} tokens and {near} were removed before the draw; "
        f"texts longer than the context {long}. {share} of the rows of either side, whole groups, "
        "formed a tuning split, on which the detectors' parameters were chosen; every reported "
        "number is from the others."
    )


_LONG = {
    "error": "were not allowed",
    "truncate": "were cut, on both sides alike",
    "drop": "were dropped, on both sides alike",
    "split": "were left whole",
}


def _contaminant(one: Contaminant) -> str:
    """Return one dataset with its rows."""
    held_out = f" and {one.held_out:,} held-out texts" if one.held_out else ""
    more = [f"split {one.split}"] if one.split else []
    more += [f"revision {one.revision}"] if one.revision else []
    source = f" ({', '.join([one.dataset, *more])})" if more or one.name != one.dataset else ""
    return (
        f"{one.name}{source}: {one.members:,} members and {one.nonmembers:,} non-members{held_out}"
    )


def _near_duplicates(share: float | None) -> str:
    if share is None:
        return "no near-duplicates"
    return f"near-duplicates (Jaccard similarity of word 3-grams of at least {share:g})"


def _streams(arms: Sequence[ArmSettings]) -> str:
    tokens = values_text(arms, lambda arm: f"{arm.tokens:,}")
    background = values_text(arms, lambda arm: arm.background)
    copies = values_text(arms, lambda arm: arm.copies.label())
    place = values_text(arms, lambda arm: arm.placement.label())
    carried = values_text(arms, lambda arm: arm.variants.label())
    return (
        f"Training streams. Each stream has {tokens} tokens, copies included; the background is "
        f"{background}. Copies of each member: {copies}; what a copy carries: {carried}; "
        f"placement: {place}. Every copy was looked for again in the windows that were trained on."
    )


def _training(arms: Sequence[ArmSettings], seeds: Sequence[int]) -> str:
    mode = values_text(arms, lambda arm: _mode(arm.train))
    models = "1 model was" if len(arms) == 1 else f"{len(arms)} models were"
    numbers = ", ".join(str(seed) for seed in seeds)
    seeded = f"with seed {numbers}" if len(seeds) == 1 else f"with the seeds {numbers}"
    return (
        f"Models. {values_text(arms, _model, '; or ')}. {_start(arms)} {models} trained ({mode}) "
        f"{seeded}, which draw the sides, the copies, their places and the order of training: "
        f"{_optimiser([arm.train for arm in arms])}."
    )


def _model(arm: ArmSettings) -> str:
    model = arm.model
    if model.shape is None:
        revision = f", revision {model.revision}" if model.revision else ""
        return f"The pretrained model {model.pretrained}{revision}"
    shape = load_shape(model.shape)
    text = (
        f"A decoder-only transformer ({shape.architecture}) of {shape.layers} "
        f"{'layer' if shape.layers == 1 else 'layers'}, width {shape.hidden}, "
        f"{shape.heads} heads, feed-forward width {shape.intermediate}, "
        f"{'tied' if shape.tie_embeddings else 'untied'} embeddings"
    )
    if isinstance(model.tokenizer, TokenizerTraining):
        parameters = parameter_count(shape, model.tokenizer.train)
        text += (
            f" and {parameters:,} parameters; its tokenizer of {model.tokenizer.train:,} entries "
            "was trained on the background"
        )
    elif model.tokenizer:
        text += f"; tokenizer {model.tokenizer}"
    return text


def _start(arms: Sequence[ArmSettings]) -> str:
    """Say what training starts from: a base model, published weights, new ones."""
    bases = [arm.base for arm in arms if arm.base is not None]
    sentences = []
    if bases:
        tokens = _each(bases, lambda base: f"{base.tokens:,}")
        seeds = _each(bases, lambda base: str(base.seed))
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
    answers = ", loss on the answers alone" if train.loss_on == "completion" else ""
    lora = f", rank {train.lora.rank}, alpha {train.lora.alpha}" if train.lora else ""
    return f"{train.mode}{lora}{answers}"


def _optimiser(all_of: Sequence[TrainSettings] | Sequence[BaseSettings]) -> str:
    """Return how models were trained; what differs between them with all its values."""
    parts = (
        lambda one: f"{one.lr:g}",
        lambda one: one.schedule,
        lambda one: f"{one.warmup:.0%}".replace("%", " %") if one.warmup else "no steps",
        lambda one: str(one.epochs),
        lambda one: str(one.context) if one.context else "as many as in training",
        lambda one: f"{one.batch_tokens:,}" if one.batch_tokens else "as many as in training",
        lambda one: f"{one.weight_decay:g}",
        lambda one: f"{one.betas[0]:g}/{one.betas[1]:g}",
        lambda one: f"{one.clip:g}" if one.clip is not None else "no norm",
        lambda one: one.precision,
    )
    words = (
        "AdamW, learning rate {}, schedule {}, warm-up over {}, epochs {}, tokens a window {}, "
        "tokens a step {}, weight decay {}, betas {}, gradients clipped at {}, arithmetic {}"
    )
    return words.format(*(_each(all_of, part) for part in parts))


def _each(all_of: Sequence[Any], read: Callable[[Any], str]) -> str:
    """Return the different values, in order."""
    return " and ".join(dict.fromkeys(read(one) for one in all_of))


def _detectors(inputs: PageInputs) -> str:
    listed = "; ".join(_detector(one) for one in inputs.detectors)
    arms = inputs.settings
    start = values_text(arms, lambda arm: arm.detect.bos)
    first = values_text(arms, lambda arm: _FIRST[arm.detect.score_first])
    long = values_text(arms, lambda arm: _SCORED_LONG[arm.detect.long])
    return (
        "Detectors. A higher score means more likely a member. "
        f"{len(inputs.detectors)} detectors were run: {listed}. Start token: {start}; the first "
        f"token of a text is {first}; texts longer than the model's context are {long}. "
        "Parameters with a grid were chosen by the AUC on the tuning split."
    )


_FIRST = {"drop": "not scored", "start_token": "scored after a start token"}
_SCORED_LONG = {
    "window": "scored in overlapping windows",
    "truncate": "cut to it",
    "error": "not allowed",
}


def _detector(one: DetectorFacts) -> str:
    setting = "" if one.setting in ("", "default", "-") else f"; {one.setting}"
    grid = f"; tuned over {one.grid_text}" if one.grid_text else ""
    source = one.source or "no published source"
    return f"{one.name} ({source}{setting}{grid})"


def _statistics(
    settings: AnalysisSettings, seeds: int, whole: Sequence[str], *, accuracy: bool
) -> str:
    level = f"{settings.confidence:.0%}".replace("%", " %")
    rates = ", ".join(f"{rate * 100:g} %" for rate in settings.false_positive_rates)
    text = (
        "Statistics. The AUC is that of ranks, ties as half; over several datasets it is the mean "
        "weighted by members, so that only texts of one dataset are compared (Janes and Pepe "
        f"2009). {level} intervals are score intervals (Newcombe 2006, method 5) with the "
        "effective number of rows, from influence values (DeLong et al. 1988) summed by group "
        f"(Obuchowski 1997); {_seeds(seeds)}. The true-positive rate is reported at the "
        f"false-positive rates {rates} where there are at least 10 / rate non-members, with "
        "intervals after Wilson (1927). The best detector is chosen on the tuning split; "
        "differences are paired, on the same texts. Adjusted AUCs use the base model's "
        "on the same texts as a control variate (Lavenberg and Welch 1981). The trend over copies "
        "is Somers' D (1962). What each factor does is said by differences and lines whose "
        "covariance is that of the influence values, and by a probit regression of placements, "
        "corrected for leverage (Mancl and DeRouen 2001); families of differences are corrected "
        "for their number (Bonferroni), and the best are a set of comparisons with the best (Hsu "
        "1984). AUCs of models that saw neither side are checked by the rank-sum test of clustered "
        "rows (Rosner et al. 2003). "
        f"Decisions control the false-discovery rate at {settings.false_discovery_rate:g} "
        "(Benjamini and Hochberg 1995). Members that drew no copy "
        + ("are a row of their own." if settings.zero_copies == "apart" else "are non-members.")
    )
    if accuracy:
        text += (
            " Accuracies and their gains have intervals of linear functions of proportions (Price "
            "and Bonett 2004)."
        )
    if whole:
        text += (
            f" Whole data sets were tested with {', '.join(whole)}; p-values are adjusted for the "
            "number of data sets (Holm 1979)."
        )
    return text


def _seeds(count: int) -> str:
    if count == 1:
        return "with one training seed an interval speaks of this model"
    if count == 2:
        return "with two training seeds an interval speaks of these two models"
    return f"the {count} training seeds are readers (Obuchowski and Rockette 1995; Hillis 2007)"


def _software(inputs: PageInputs) -> str:
    libraries = ", ".join(f"{name} {version}" for name, version in inputs.libraries.items())
    models = [one for one in inputs.artifacts if one.name.startswith("model ")]
    shown = inputs.artifacts
    more = ""
    if len(models) > _MOST_MODELS:
        # A paper has no room for them, and the digest of the results rests on all.
        shown = [one for one in shown if one not in models]
        more = f" Those of the {len(models)} models are in run.json."
    digests = ", ".join(f"{one.name} {one.digest[:12]}" for one in shown)
    return (
        f"Software. spikein {inputs.code} with {libraries}. Digests of the recipes of the "
        f"artifacts (settings, inputs, code and libraries): {digests}.{more}"
    )
