"""A tiny random BERT that knows the words of the generated texts."""

from typing import Any

import torch

from tests.conftest import WORDS


def tiny_masked_parts(*, seed: int = 0, context: int = 64) -> tuple[Any, Any]:
    """Return the model and its tokenizer."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [*special, *dict.fromkeys(WORDS), *".,!?", "##s", "##ing"]
    vocabulary = {word: number for number, word in enumerate(words)}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=context,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = BertForMaskedLM(
            BertConfig(
                vocab_size=len(vocabulary),
                hidden_size=16,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=32,
                max_position_embeddings=context,
                initializer_range=0.5,
            )
        )
    return model.eval(), tokenizer
