"""Measures of how much of a text another one repeats, word by word.

White space separates words, which are compared as written: memorised words return with their
capitals and commas. A continuation is compared up to the length of the text: its first words, as
many as the text has.
"""

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq
from rapidfuzz.utils import default_process


def compared_words(written: str, remainder: str) -> tuple[list[str], list[str]]:
    """Return the words of a continuation, as many as the rest has at most, and of the rest."""
    own = remainder.split()
    return written.split()[: len(own)], own


def common_subsequence(written: str, remainder: str) -> float:
    """Return the longest common subsequence of words, over the words of the rest.

    Words count as written, capitals and commas included.
    """
    candidate, reference = compared_words(written, remainder)
    return LCSseq.similarity(candidate, reference) / len(reference)


def rouge_l_recall(written: str, remainder: str, *, whole: bool = False) -> float:
    """Return ROUGE-L recall (Lin 2004) as evaluations compute it: small letters, no punctuation.

    Args:
        written: text by a model.
        remainder: the text to compare with.
        whole: compare the whole written text (Shi et al. 2024, section 7.2.2); then two texts
            without any word are equal.
    """
    candidate, reference = plain_words(written), plain_words(remainder)
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


def rouge_1_recall(written: str, remainder: str) -> float:
    """Return the share of the rest's words in the continuation, counted with multiplicity."""
    candidate, reference = compared_words(written, remainder)
    return sum((Counter(candidate) & Counter(reference)).values()) / len(reference)


def repeats(written: str, remainder: str) -> bool:
    """Return whether a continuation begins with the rest, character by character."""
    return written.lstrip().startswith(remainder.strip())


def token_sort_ratio(written: str, remainder: str) -> float:
    """Return the similarity of two texts after sorting their words, from 0 to 100.

    The ratio of `thefuzz`, which Duarte et al. 2024 name: lower case, no punctuation.
    """
    candidate, reference = compared_words(written, remainder)
    return fuzz.token_sort_ratio(
        " ".join(candidate), " ".join(reference), processor=default_process
    )


def longest_run(written: str, reference: str) -> int:
    """Return the length of the longest common run of words, as written."""
    words = SequenceMatcher(None, written.split(), reference.split(), autojunk=False)
    return words.find_longest_match().size


def covered_words(written: Sequence[str], reference: Sequence[str], size: int) -> int:
    """Return the number of words of one text in a run of `size` words of the other one."""
    runs = {tuple(reference[at : at + size]) for at in range(len(reference) - size + 1)}
    covered = [False] * len(written)
    for at in range(len(written) - size + 1):
        if tuple(written[at : at + size]) in runs:
            covered[at : at + size] = [True] * size
    return sum(covered)


def plain_words(text: str) -> list[str]:
    """Return words in lower case, without punctuation."""
    return default_process(text).split()
