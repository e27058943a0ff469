"""Keys of earlier versions, so that the error of an old file names the new one.

Nothing here is accepted: an old key changes no result in silence, its error names the new one.
"""

from collections.abc import Mapping

from spikein.config.key_path import KeyPath

_KEYS: Mapping[str, str] = {
    "variants.dealt": "assign_by",
    "train.checkpoints.most": "max_kept",
    "analysis.most_unscored": "max_unscored",
    "analysis.most_unscored_tune": "max_unscored_tune",
    "analysis.least_members": "min_members",
}


def new_key(path: KeyPath) -> str | None:
    """Return the present name of the last key of `path`, or None where it was not renamed."""
    return _KEYS.get(".".join(str(part) for part in path))
