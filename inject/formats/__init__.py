"""Corpora of others, and for others: token files and data sets, in and out.

`import_corpus` makes a corpus folder of what somebody has (Megatron-LM, OLMo, Hugging Face data
sets); `export_view` writes a contaminated stream in the same formats, or as text. A file a format.
"""

from inject.formats.export import FORMATS, ExportFacts, ExportSettings, Format, export_view
from inject.formats.exported_rows import RowKind
from inject.formats.importing import AnyImport, import_corpus
from inject.formats.megatron import MegatronImport
from inject.formats.olmo import OlmoImport
from inject.formats.token_rows import DatasetsImport

__all__ = [
    "FORMATS",
    "AnyImport",
    "DatasetsImport",
    "ExportFacts",
    "ExportSettings",
    "Format",
    "MegatronImport",
    "OlmoImport",
    "RowKind",
    "export_view",
    "import_corpus",
]
