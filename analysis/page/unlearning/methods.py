"""The methods paragraph of a paper: how models were unlearned, and how that was measured."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from analysis.page.table import with_noun

_WORDS = {
    "gradient_ascent": "gradient ascent on the forget set (Jang et al. 2023)",
    "gradient_difference": "gradient ascent on the forget set with descent on retained texts "
    "(Liu et al. 2022)",
    "kl": "gradient ascent on the forget set with the Kullback-Leibler divergence from the "
    "original on retained texts (Maini et al. 2024)",
    "npo": "negative preference optimisation (Zhang et al. 2024)",
    "simnpo": "SimNPO, which normalises by length and needs no reference (Fan et al. 2024)",
    "dpo": "preference optimisation towards answers that claim ignorance (Rafailov et al. 2023, "
    "Maini et al. 2024)",
    "rmu": "representation misdirection, RMU (Li et al. 2024)",
    "task_vector": "the negated task vector of a model tuned on the forget set (Ilharco et al. "
    "2023)",
    "relabel": "alternative labels from a model that knows the texts better (Eldan and "
    "Russinovich 2023)",
}
"""What each method that comes with spikein does, with its source."""


class MethodEntry(NamedTuple):
    """One method with its settings."""

    label: str
    """Of the unlearned model."""
    method: str
    """Its name, or `FILE.py:NAME`."""
    settings: Mapping[str, Any]
    """All of them, plain values; what the method does not use is None."""


def unlearning_paragraphs(methods: Sequence[MethodEntry]) -> tuple[str, ...]:
    """Return the paragraph; empty if nothing was unlearned."""
    if not methods:
        return ()
    names = list(dict.fromkeys(method.method for method in methods))
    descriptions = "; ".join(_WORDS.get(name, f"{name} (no published source)") for name in names)
    settings = "; ".join(f"{method.label}: {_settings(method.settings)}" for method in methods)
    several = f" in {len(methods)} settings" if len(methods) > len(names) else ""
    return (
        "Unlearning. Each trained model was made to forget a part of its members, the forget set, "
        f"by {with_noun(len(names), 'method')}{several}: {descriptions}. Settings: "
        f"{settings}. Each unlearned model is compared with one that was trained on the same "
        "windows in the same order without the forget set (the retrained model), and with the "
        "original. PrivLeak is that of Shi et al. (2024), forget quality the Kolmogorov-Smirnov "
        "distance of mean log-probabilities, after Maini et al. (2024), its p-value by swapping "
        "whole groups of texts between the two models; exact memorisation is that of Tirumala et "
        "al. (2022), extraction strength after Carlini et al. (2021).",
    )


def _settings(settings: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')} {_value(value)}"
        for name, value in settings.items()
        if value is not None
    )


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (list, tuple)):
        return "/".join(_value(item) for item in value)
    return str(value)
