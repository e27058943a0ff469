"""The evidence that detectors receive, and how each kind of need is met: one file per kind."""

from detect.evidence.evidence import (
    SHARED,
    Evidence,
    ExampleEvidence,
    HeldOutRows,
    PrefixedStatistics,
    ShadowModel,
)

__all__ = [
    "SHARED",
    "Evidence",
    "ExampleEvidence",
    "HeldOutRows",
    "PrefixedStatistics",
    "ShadowModel",
]
