"""How much of a text another one repeats, word by word.

A word is what stands between white space, compared as it is written: what was memorised comes back
with its capitals and its commas. A continuation is compared as far as the text goes: its first
words, as many as the text has.
"""

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq
from rapidfuzz.utils import default_process


def compared_words(written: str, rest: str) -> tuple[list[str], list[str]]:
    """Return the words of a continuation, as many as the rest has at most, and of the rest."""
    own = rest.split()
    return written.split()[: len(own)], own


def common_subsequence(written: str, rest: str) -> float:
    """Return the longest common subsequence of words, over the words of the rest.

    Words count as they are written, capitals and commas included.
    """
    candidate, reference = compared_words(written, rest)
    return LCSseq.similarity(candidate, reference) / len(reference)


def rouge_l_recall(written: str, rest: str, *, whole: bool = False) -> float:
    """Return ROUGE-L recall (Lin 2004) as evaluations compute it: small letters, no punctuation.

    Args:
        written: what a model wrote.
        rest: what it is held against.
        whole: compare all that was written (Shi et al. 2024, section 7.2.2); then two texts without
            any word are equal.
    """
    candidate, reference = plain_words(written), plain_words(rest)
    if not reference:
        return float(whole and not candidate)
    compared = candidate if whole else candidate[: len(reference)]
    return LCSseq.similarity(compared, reference) / len(reference)


def rouge_l_f1(written: str, reference: str) -> float:
    """Return the harmonic mean of ROUGE-L precision and recall; small letters, no punctuation."""
    first, second = plain_words(written), plain_words(reference)
    if not first or not second:
        return float(first == second)
    return 2 * LCSseq.similarity(first, second) / (len(first) + len(second))


def rouge_1_recall(written: str, rest: str) -> float:
    """Return the share of the rest's words that the continuation holds, each as often as there."""
    candidate, reference = compared_words(written, rest)
    return sum((Counter(candidate) & Counter(reference)).values()) / len(reference)


def repeats(written: str, rest: str) -> bool:
    """Return whether a continuation begins with the rest, character by character."""
    return written.lstrip().startswith(rest.strip())


def token_sort_ratio(written: str, rest: str) -> float:
    """Return how alike two texts are once their words are sorted, from 0 to 100.

    The ratio of `thefuzz`, which Duarte et al. 2024 name: small letters, no punctuation.
    """
    candidate, reference = compared_words(written, rest)
    return fuzz.token_sort_ratio(
        " ".join(candidate), " ".join(reference), processor=default_process
    )


def longest_run(written: str, reference: str) -> int:
    """Return how many words in a row two texts have in common, at most, as they are written."""
    words = SequenceMatcher(None, written.split(), reference.split(), autojunk=False)
    return words.find_longest_match().size


def covered_words(written: Sequence[str], reference: Sequence[str], size: int) -> int:
    """Return how many words of one text stand in a run of `size` words that the other one has."""
    runs = {tuple(reference[at : at + size]) for at in range(len(reference) - size + 1)}
    covered = [False] * len(written)
    for at in range(len(written) - size + 1):
        if tuple(written[at : at + size]) in runs:
            covered[at : at + size] = [True] * size
    return sum(covered)


def plain_words(text: str) -> list[str]:
    """Return words in small letters and without punctuation."""
    return default_process(text).split()
