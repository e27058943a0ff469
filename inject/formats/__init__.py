"""Corpora of others, and for others: token files and data sets, in and out.

`importing.import_corpus` makes a corpus folder of what somebody has (Megatron-LM, OLMo, Hugging
Face data sets); `export.export_view` writes a contaminated stream in the same formats, or as text.
A file a format.
"""
