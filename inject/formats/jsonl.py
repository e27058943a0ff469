"""JSON Lines: the text of each document, one per line, for trainers that tokenise themselves.

Text is not tokens. If a document's text does not reproduce its tokens (a copy spliced between two
words, letters cut in half by a window, a tokenizer that loses blanks), its line says
`"same_tokens": false`, and the number of such documents is reported. The end token after a document
is not part of its text; `"ended": false` marks a document without one. A batch of documents is in
memory at a time. Cost: decoding and encoding again, a few MB/s a core.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from inject.corpus.tokenizer import AnyTokenizer, encode_texts
from inject.formats.exported_rows import ExportedRows

_TOKENS = 1 << 18


def write_texts(
    path: Path,
    rows: ExportedRows,
    *,
    tokenizer: AnyTokenizer,
    end: int,
) -> dict[str, int]:
    """Write the documents of a stream as text, and count those that do not come back.

    Args:
        path: the file.
        rows: the documents of the stream.
        tokenizer: decodes, and encodes again to compare.
        end: the end token.

    Returns:
        Number of `documents`, those whose text does not give their tokens again (`changed`), and
        the tokens in these.
    """
    changed = changed_tokens = 0
    with path.open("wb") as file:
        for edges, ids in rows.batches(_TOKENS):
            documents = np.split(ids, edges[1:-1] - edges[0])
            ended = [bool(document[-1] == end) for document in documents]
            bodies = [
                document[:-1] if last else document
                for document, last in zip(documents, ended, strict=True)
            ]
            texts: list[str] = tokenizer.batch_decode(
                bodies, skip_special_tokens=False, clean_up_tokenization_spaces=False
            )
            again = encode_texts(tokenizer, texts)
            for text, body, last, back in zip(texts, bodies, ended, again, strict=True):
                line: dict[str, Any] = {"text": text}
                if not last:
                    line["ended"] = False
                if not np.array_equal(body, back):
                    line["same_tokens"] = False
                    changed += 1
                    changed_tokens += len(body) + last
                file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
    return {"documents": rows.count, "changed": changed, "changed_tokens": changed_tokens}
