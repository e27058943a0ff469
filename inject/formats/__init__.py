"""Corpora of others, and for others: token files and datasets, in and out.

`importing.import_corpus` makes a corpus folder of existing tokens (Megatron-LM, OLMo, Hugging Face
datasets); `export.export_view` writes a contaminated stream in the same formats, or as text. One
file per format.
"""
