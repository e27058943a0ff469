"""The public suites whose settings are known, each as its code has it.

Read in stored copies of their repositories, at the commits that are named. Where several detectors
of a suite are defined as ours are, they stand here to show that nothing was found to differ.
"""

from detect.access import Access
from detect.compat.suite import (
    Suite,
    SuiteDetector,
    at_least_one,
    float_floor,
    loss,
    min_k,
    min_k_plus_plus,
    per_cent_floor,
    zlib_over_bytes,
    zlib_over_ratio,
)
from inject.errors import InputError, did_you_mean

_FLOAT = "the number of tokens is int(n·k) on floats; a text of fewer than 1/k tokens gives NaN"
_NO_CLAMP = f"{_FLOAT}; the variance has no lower bound"
_WHOLE = "a text longer than the context is fed whole; here it is read in windows"
_HALF = "with a half-precision model its softmax is in half precision; ours is always float32"

_LOSS = SuiteDetector(name="loss", score=loss, ours="loss", difference="")
_ZLIB = SuiteDetector(name="zlib", score=zlib_over_bytes, ours="zlib", difference="")
_MIN_K = SuiteDetector(
    name="min_k", score=min_k(float_floor(0.2)), ours="min_k:k=0.2", difference=_FLOAT
)
_MIN_K_PLUS_PLUS = SuiteDetector(
    name="min_k_plus_plus",
    score=min_k_plus_plus(float_floor(0.2)),
    ours="min_k_plus_plus:k=0.2",
    difference=_NO_CLAMP,
    access=Access.DISTRIBUTION,
)

SUITES = (
    Suite(
        name="mink++",
        repository="zjysteven/mink-plus-plus",
        files={"run.py": "62281ab13781"},
        detectors=(_LOSS, _ZLIB, _MIN_K, _MIN_K_PLUS_PLUS),
        not_reproduced=(
            _WHOLE,
            _HALF,
            "it prints ten values of k; here k is 0.2",
        ),
    ),
    Suite(
        name="mimir",
        repository="iamgroot42/mimir",
        files={
            "mimir/attacks/loss.py": "13a77a4b86c1",
            "mimir/attacks/zlib.py": "05e5efd3f869",
            "mimir/attacks/min_k.py": "05e5efd3f869",
            "mimir/attacks/min_k_plus_plus.py": "206c01012d58",
            "mimir/models.py": "014d0ea96a92",
        },
        detectors=(_LOSS, _ZLIB, _MIN_K, _MIN_K_PLUS_PLUS),
        not_reproduced=(
            "its scores are losses, small for members; here all are turned, which changes no AUC",
            "GPT-J and GPT-NeoX are loaded in float16; here --dtype says so",
        ),
    ),
    Suite(
        name="mia_llms_benchmark",
        repository="computationalprivacy/mia_llms_benchmark",
        files=dict.fromkeys(
            ("attacks/utils.py", "attacks/zlib.py", "attacks/minkprob.py", "main.py"),
            "cfb40f8ffff4",
        ),
        detectors=(
            _LOSS,
            SuiteDetector(
                name="zlib",
                score=zlib_over_ratio,
                ours="zlib",
                difference="divides by compressed bytes per character, not by compressed bytes",
            ),
            SuiteDetector(
                name="min_k",
                score=min_k(per_cent_floor(20)),
                ours="min_k:k=0.2",
                difference=_FLOAT.replace("int(n·k)", "int(k/100·n)"),
            ),
        ),
        not_reproduced=(
            "in a batch (32 by default) its mask is shifted the other way, so that in every padded "
            "text the first padding token counts as a token; these numbers are of batches of one",
            "its Min-K++ takes the plain mean and deviation over the vocabulary, which the token "
            "statistics do not hold",
            "its true-positive rate is at the nearest false-positive rate, above the limit, too; "
            "its AUC is a mean of bootstrap samples",
            _WHOLE,
        ),
    ),
    Suite(
        name="fast-mia",
        repository="Nikkei/fast-mia",
        files={
            "src/methods/loss.py": "06b9f8f2a4bc",
            "src/methods/zlib.py": "ae22cd4646ce",
            "src/methods/mink.py": "7638105b09ff",
            "src/methods/base.py": "1e89bac13ff5",
        },
        detectors=(
            _LOSS,
            _ZLIB,
            SuiteDetector(
                name="min_k",
                score=min_k(at_least_one(float_floor(0.5))),
                ours="min_k:k=0.2",
                difference="its default k is 0.5, where the paper and ours have 0.2; int(n·k) on "
                "floats, at least one token",
            ),
        ),
        not_reproduced=("log-probabilities come from vLLM, in the number format it chooses",),
    ),
)


def suite_names() -> tuple[str, ...]:
    """Return the names of all suites."""
    return tuple(one.name for one in SUITES)


def get_suite(name: str) -> Suite:
    """Return a suite by its name.

    Raises:
        InputError: there is none of that name.
    """
    plain = name.strip().lower()
    for one in SUITES:
        if one.name == plain:
            return one
    raise InputError(
        f"no suite is called {name!r}.{did_you_mean(plain, suite_names())}",
        where="--compat",
        allowed=", ".join(suite_names()),
    )
