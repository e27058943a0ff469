"""The evidence that detectors receive, and how each kind of need is met: one file per kind."""

from detect.evidence.evidence import SHARED as SHARED
from detect.evidence.evidence import Evidence as Evidence
from detect.evidence.evidence import ExampleEvidence as ExampleEvidence
from detect.evidence.evidence import HeldOutRows as HeldOutRows
from detect.evidence.evidence import PrefixedStatistics as PrefixedStatistics
from detect.evidence.evidence import ShadowModel as ShadowModel
