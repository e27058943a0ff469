"""The evidence that detectors are given, and how each kind of need is met: one file a kind."""

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
