"""The Hugging Face hub: the commit that an id stands for, and its files.

Datasets, background, tokenizers and models are resolved by one resolver, with one time-out, one
rule for working without a network and one set of errors (`resolver`). `snapshot` fetches the files
of a model or a tokenizer and pins the code that these take from elsewhere, and `dataset_rows` reads
rows.
"""
