"""What steps read of a corpus: its tokens, not what it says of its sources or of what was left out.

So an audit rule that drops no further document trains no model again.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from inject.corpus.corpus import FACTS_FILE
from inject.corpus.imported_files import PLACES
from inject.digest import digest, file_digest
from inject.step import MANIFEST, Reading

TOKENS = Reading(facet="tokens")
"""The corpus without what it says of its sources and of what was left out."""

OF_CORPUS: Mapping[str, str] = {"tokens": f"{__name__}:tokens"}
"""The facets of a corpus, for `Step.facets`."""

_REPORTS = ("mixture", "shares")
"""What `corpus.json` says of the sources, which only the page reads."""


def tokens(folder: Path) -> str:
    """Return the digest of what `TOKENS` names."""
    facts = json.loads((folder / FACTS_FILE).read_text(encoding="utf-8"))
    kept = {name: value for name, value in facts.items() if name not in _REPORTS}
    # What else the files of an import hold, behind the tokens that are used, is no part of them.
    kept["shards"] = [
        {name: value for name, value in shard.items() if name != "file_sha256"}
        for shard in facts["shards"]
    ]
    shards = {shard["name"] for shard in facts["shards"]}
    files = {
        name: file_digest(path)
        for path in folder.rglob("*")
        if path.is_file()
        and (name := path.relative_to(folder).as_posix())
        not in (FACTS_FILE, MANIFEST, PLACES, *shards)
        and not name.startswith("overlaps.")
    }
    return digest({"facts": kept, "files": files})
