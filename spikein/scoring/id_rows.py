"""Rows that are token ids: checked against the models' vocabularies, and scored by few detectors.

Nothing is tokenised, and no start token is added. A detector that reads the text, or another form
of it, has nothing to read; `blind` reads the ids as words.
"""

from collections.abc import Sequence

from detect.detector_settings import DetectorSetting
from detect.evidence.frequency import Frequency
from detect.evidence.membership import Sides
from detect.evidence.views import InverseTemperature, Reference, View
from detect.scoring import Runnable
from detect.user_rows.id_columns import HighestId
from detect.views import TEXT
from inject.errors import InputError
from spikein.scoring.options import ScoringOptions

_READ_TEXTS = ("zlib", "tag_tab")
"""Detectors that read the text in addition to its token statistics."""
_OF_TEXTS = ("bos", "score_first", "held_out")
"""Options that apply only to texts."""


def check_ids(highest: HighestId, model: str, options: ScoringOptions) -> None:
    """Check that ids can be scored as they are; load no model.

    Args:
        highest: the highest id of the rows.
        model: the target.
        options: of the run.

    Raises:
        InputError: an option that applies to texts, a model on a server, or an id outside the
            vocabulary of a model; names the row, the id and the allowed range.
    """
    useless = [name for name in _OF_TEXTS if name in options.model_fields_set]
    if useless:
        raise InputError(f"{', '.join(useless)} applies only to texts, and the rows are token ids")
    if options.servers:
        raise InputError("token ids can be scored only by a model on this machine", where="server")
    for name, revision in ((model, options.revision), (options.reference, None)):
        rows = name and _vocabulary(name, revision, trusted=options.trust_remote_code)
        if isinstance(rows, int) and highest.id >= rows:
            raise InputError(
                f"id {highest.id:,} is outside the vocabulary of {name}",
                where=highest.place,
                allowed=f"0 to {rows - 1:,}",
                hint="Are the ids those of this model's tokenizer?",
            )


def _vocabulary(model: str, revision: str | None, *, trusted: bool) -> int | None:
    from train.models.pretrained import code_options, find_model
    from train.models.weight_check import vocabulary_rows

    folder = find_model(model, revision=revision, trust_remote_code=trusted)
    return vocabulary_rows(folder.path, code_options(folder, model, trust_remote_code=trusted))


def of_ids(settings: Sequence[DetectorSetting], *, leave_out: bool) -> Runnable:
    """Return the settings that can score ids.

    Args:
        settings: the requested settings.
        leave_out: omit the others with a note (for `all`); else raise.

    Raises:
        InputError: a named detector reads texts.
    """
    readers = [setting for setting in settings if _reads_only_ids(setting)]
    others = list(dict.fromkeys(setting.name for setting in settings if setting not in readers))
    if others and not leave_out:
        raise InputError(
            f"{others[0]} reads texts, and the rows are token ids", where=f"detector {others[0]}"
        )
    note = f"The rows are token ids; left out, as they read texts: {', '.join(others)}"
    return readers, (note,) if others else ()


def _reads_only_ids(setting: DetectorSetting) -> bool:
    return setting.name not in _READ_TEXTS and all(
        need == View(TEXT) or isinstance(need, Sides | Reference | InverseTemperature | Frequency)
        for need in setting.needs
    )
