"""Corpora of others, and for others: token files and data sets, in and out.

`import_corpus` makes a corpus folder of what somebody has (Megatron-LM, OLMo, Hugging Face data
sets); `export_view` writes a contaminated stream in the same formats, or as text. A file a format.
"""

from inject.exchange.described import DescribedImport, DescribedSource
from inject.exchange.export import FORMATS, ExportFacts, Format, export_view
from inject.exchange.importing import AnyImport, import_corpus
from inject.exchange.megatron import MegatronImport
from inject.exchange.olmo import OlmoImport
from inject.exchange.rows import DatasetsImport
from inject.exchange.stream import RowKind

__all__ = [
    "FORMATS",
    "AnyImport",
    "DatasetsImport",
    "DescribedImport",
    "DescribedSource",
    "ExportFacts",
    "Format",
    "MegatronImport",
    "OlmoImport",
    "RowKind",
    "export_view",
    "import_corpus",
]
