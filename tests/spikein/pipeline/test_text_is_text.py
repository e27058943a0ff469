"""Training and scoring use the same ids, even of texts that spell special tokens.

Both are read off the disk: the copies out of `payload.bin`, the scored ids out of
`statistics.arrow`. The corpus and the model each load the tokenizer for themselves.
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from detect.engine.forward_pass import token_statistics
from detect.evidence.token_counts import count_texts
from detect.settings import ScoringPolicy
from detect.token_statistics import write_statistics
from inject.corpus.tokenizer import load_tokenizer
from inject.plan.plan import write_plan
from inject.plan.settings import Copies
from inject.stream.inputs import example_tokens
from tests.conftest import make_texts
from tests.detect.models import random_target
from tests.inject.examples.drawing import plain_row
from tests.inject.streams import plan_for, random_source

SPECIAL = ["<|endoftext|>", "</s>", "<s>", "<unk>", "<pad>"]
ADDED = ["<tool>", "Ørsted", "zz"]
LETTERS = "abcdefghijklmnopqrstuvwxyz ABCT.,<>/|_"


def byte_level():
    from inject.corpus.tokenizer import train_tokenizer

    return train_tokenizer(make_texts(200), 400)


def added_tokens():
    """Byte-level as GPT-NeoX's, offsets trimmed, with added tokens that are special and not."""
    from tokenizers import AddedToken, processors

    tokenizer = byte_level()
    tokenizer.backend_tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL[1:]})
    tokenizer.add_tokens([AddedToken(token, normalized=True) for token in ADDED])
    return tokenizer


def unigram():
    """SentencePiece's Unigram with byte fallback; special pieces are in the model's vocabulary."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0)]
    pieces += [(f"<0x{byte:02X}>", -9.0) for byte in range(256)]
    pieces += [(piece, -7.0) for piece in dict.fromkeys("▁" + LETTERS.replace(" ", ""))]
    pieces += [(piece, -4.0) for piece in ("▁the", "▁river", "er", "ed", "an", "</", "s>")]
    backend = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=True))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    return _with_start(PreTrainedTokenizerFast(tokenizer_object=backend, **_NAMES))


def merged():
    """SentencePiece's BPE, converted carelessly: its merges can produce the special pieces."""
    from tokenizers import Tokenizer, models, normalizers
    from transformers import PreTrainedTokenizerFast

    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces += [*dict.fromkeys("▁" + LETTERS.replace(" ", "")), "s>", "</", "he", "the"]
    merges = [("s", ">"), ("<", "/"), ("<", "s>"), ("</", "s>"), ("h", "e"), ("t", "he")]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    backend = Tokenizer(
        models.BPE(vocab=vocabulary, merges=merges, byte_fallback=True, unk_token="<unk>")
    )
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    return _with_start(PreTrainedTokenizerFast(tokenizer_object=backend, **_NAMES))


_NAMES = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


def _with_start(tokenizer):
    from tokenizers import processors

    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    return tokenizer


KINDS = {
    "byte-level": byte_level,
    "added tokens": added_tokens,
    "unigram": unigram,
    "merged": merged,
}


@pytest.fixture(scope="module", params=KINDS)
def loaded(request, tmp_path_factory):
    """The tokenizer that the corpus is made with, and a model with its own, as loaded from disk."""
    folder = tmp_path_factory.mktemp("tokenizer")
    KINDS[request.param]().save_pretrained(folder)
    return load_tokenizer(str(folder)), random_target("llama", load_tokenizer(str(folder)))


part = st.sampled_from([*SPECIAL, *ADDED, " ", "the", " river", "河水", "река", "<0x41>", "ł"])
text = st.lists(part | st.text(st.characters(exclude_categories=["Cs"]), max_size=6), max_size=6)


def _trained(folder: Path) -> dict[str, list[int]]:
    """The text of each copy, from the plan's files."""
    payload = np.fromfile(folder / "payload.bin", dtype="<u2")
    copies = {}
    for row in pq.read_table(folder / "plan.parquet").to_pylist():
        start = row["payload_offset"] + row["lead"]
        copies[row["example_id"]] = payload[start : start + row["text_length"]].tolist()
    return copies


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(texts=st.lists(text.map("".join), min_size=1, max_size=4, unique=True))
def test_scored_ids_equal_the_ids_of_the_copies(loaded, texts):
    tokenizer, target = loaded
    examples = [
        plain_row(str(row), text=f"the {content} river") for row, content in enumerate(texts)
    ]
    plan = plan_for(
        examples,
        example_tokens(examples, tokenizer),
        source=random_source(4096, seed=0),
        copies=Copies(fixed=1),
        context=256,
    )
    statistics = token_statistics(target, [example.text for example in examples], ScoringPolicy())
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        write_plan(folder, plan)
        write_statistics(folder, [example.example_id for example in examples], statistics)
        copies = _trained(folder)
        with pa.memory_map(str(folder / "statistics.arrow")) as file:
            scored = pa.ipc.open_file(file).read_all().to_pylist()
    # The first id of a text has no history, unless a start token precedes it.
    unscored = 0 if tokenizer("a")["input_ids"][0] == tokenizer.bos_token_id else 1
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    counted = np.zeros(512, int)
    for row in scored:
        assert row["ids"] == copies[row["example_id"]][unscored:]
        assert special.isdisjoint(copies[row["example_id"]])
        np.add.at(counted, copies[row["example_id"]], 1)
    frequency = count_texts(tokenizer, [example.text for example in examples])
    assert frequency.counts.tolist() == counted[: len(frequency.counts)].tolist()
