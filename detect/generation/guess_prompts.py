"""How a model is asked for a masked part, and how its answer is read.

`passage`, `test` and the two prompts of knowledge filters are those of Ravichander et al. 2025,
appendix B, word for word; a masked option is asked for as in Deng et al. 2024. Both are for models
that follow instructions. `plain` is ours, for models that only continue texts: the text up to the
mask is continued, and as many words are read as were masked.
"""

import re
from typing import Literal

from detect.generation.masked_parts import MaskedPart

Prompt = Literal["passage", "test", "plain", "filter", "filter_100"]

_PASSAGE = """You have seen the following passage in your training data. What is the word that \
fills in the [MASK] token in it? This word is a noun, verb, adjective, or adverb (not a pronoun, \
preposition or conjunction). You must make a guess, even if you are uncertain.

Example:

Input: Stay gold, [MASK], stay gold.

Output: <word>Ponyboy</word>

Input: The door opened, and [MASK], dressed and hatted, entered with a cup of tea.

Output: <word>Gerty</word>

Input: {shown}"""
_TEST = """Complete the sentence in one word:

Input: {shown}

Reply the answer only."""
_OPTION = """Please fill in the [MASK] in option {option} based on your benchmark knowledge.

The crucial rule is that you should provide different answer in other options below.

{shown}

Reply the answer only."""
_FILTER = """What is the word that fills in the [MASK] token in the following passage?

Passage: {shown}"""
_FILTER_100 = """What are 100 words that can fill in the [MASK] token in the following passage?

Passage: {shown}"""
_TEMPLATES = {
    "passage": _PASSAGE,
    "test": _TEST,
    "filter": _FILTER,
    "filter_100": _FILTER_100,
}

_TAGGED = re.compile(r"<word>\s*(.*?)\s*(?:</word>|$)", re.IGNORECASE | re.DOTALL)
_LABEL = re.compile(r"^\s*(?:output|answer)\s*:\s*", re.IGNORECASE)
_QUOTED = re.compile(r"[\"“”]([^\"“”]+)[\"“”]")
_SENTENCE = re.compile(r"\b(?:is|be|word)\s*:?\s+(\S+)\s*$", re.IGNORECASE)
_EDGES = " \t\n.,;:!?\"'“”‘’()[]{}*_`"


def prompt_text(part: MaskedPart, prompt: Prompt) -> str:
    """Return what a model is asked; `plain` is continued, everything else is a question."""
    if prompt == "plain":
        return part.before.rstrip()
    template = _OPTION if part.option else _TEMPLATES[prompt]
    # By parts, not by `format`: a text may hold braces.
    return template.replace("{option}", part.option).replace("{shown}", part.shown)


def read_answer(written: str, part_words: int, prompt: Prompt) -> str:
    """Return the guess in an answer, without what models put around it.

    Args:
        written: the answer.
        part_words: words of the part that was masked.
        prompt: how it was asked.
    """
    if prompt == "plain":
        return _bare(" ".join(written.split()[:part_words]))
    if tagged := _TAGGED.search(written):
        return _bare(tagged[1])
    lines = [line for line in _LABEL.sub("", written.strip()).splitlines() if line.strip()]
    if not lines:
        return ""
    line = _LABEL.sub("", lines[0])
    if len(line.split()) > part_words:
        if quoted := _QUOTED.findall(line):
            return _bare(quoted[-1])
        if wrapped := _SENTENCE.search(line):
            return _bare(wrapped[1])
    return _bare(line)


def same(guess: str, wanted: str) -> bool:
    """Return whether a guess is the part that was masked; capitals make no difference."""
    return bool(guess) and guess.casefold() == _bare(wanted).casefold()


def listed(written: str, wanted: str) -> bool:
    """Return whether a word stands in a list that a model wrote."""
    return _bare(wanted).casefold() in {_bare(word).casefold() for word in written.split()}


def _bare(text: str) -> str:
    return text.strip(_EDGES)
