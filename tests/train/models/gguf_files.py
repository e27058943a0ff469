"""Small GGUF files: a LLaMA of one layer with a tokenizer of 300 tokens, quantised by `gguf`."""

import json
from pathlib import Path
from typing import Any

import numpy as np

HIDDEN, INNER, HEADS = 64, 96, 4


def write_gguf(path: Path, tokenizer: Any, *, leave_out: str = "", **changes: Any) -> Path:
    """Write a file; `changes` may set the architecture, the embedding's rows or the split parts."""
    from gguf import GGMLQuantizationType, GGUFWriter, TokenType
    from gguf.quants import quantize

    bpe = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    tokens = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    random = np.random.Generator(np.random.Philox(key=7))
    writer = GGUFWriter(path, changes.get("architecture", "llama"))
    writer.add_name("tiny")
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS // 2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(len(tokens))
    if "parts" in changes:
        writer.add_uint16("split.count", changes["parts"])
    if leave_out != "tokenizer":
        writer.add_tokenizer_model("gpt2")
        writer.add_token_list([token for token, _ in tokens])
        writer.add_token_types([TokenType.NORMAL] * len(tokens))
        writer.add_token_merges([" ".join(pair) for pair in bpe["merges"]])
        writer.add_eos_token_id(tokenizer.eos_token_id)
        writer.add_bos_token_id(tokenizer.eos_token_id)
    shapes = {
        "token_embd": (changes.get("rows", len(tokens)), HIDDEN),
        "output_norm": (HIDDEN,),
        "blk.0.attn_norm": (HIDDEN,),
        "blk.0.ffn_norm": (HIDDEN,),
        "blk.0.attn_q": (HIDDEN, HIDDEN),
        "blk.0.attn_k": (HIDDEN // 2, HIDDEN),
        "blk.0.attn_v": (HIDDEN // 2, HIDDEN),
        "blk.0.attn_output": (HIDDEN, HIDDEN),
        "blk.0.ffn_gate": (INNER, HIDDEN),
        "blk.0.ffn_up": (INNER, HIDDEN),
        "blk.0.ffn_down": (HIDDEN, INNER),
    }
    kind = GGMLQuantizationType.Q4_1
    for name, shape in shapes.items():
        weight = random.normal(0, 0.2, shape).astype(np.float32)
        if len(shape) == 1:
            writer.add_tensor(f"{name}.weight", weight + 1)
        else:
            writer.add_tensor(f"{name}.weight", quantize(weight, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
