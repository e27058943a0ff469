"""The sources of the methods that a report uses, as BibTeX: one data file, and what cites what."""

from analysis.references.bibliography import (
    STATISTICS,
    Reference,
    bibliography,
    cited,
    references_text,
)

__all__ = ["STATISTICS", "Reference", "bibliography", "cited", "references_text"]
