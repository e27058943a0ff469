"""The data files of the generated facts: lists of words, and sentences about each kind of subject.

They lie beside this module and decide the rows as code does: `DATA_FILES` names them, so that their
content is part of the digest of whatever uses them (`inject.source_digest`).
"""

from functools import cache
from importlib.resources import files

DATA_FILES = ("gatherings.txt", "names.txt", "people.txt", "towns.txt", "works.txt")


@cache
def data_text(name: str) -> str:
    """Return the content of one of the data files."""
    if name not in DATA_FILES:
        raise KeyError(name)
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def read_lists(text: str) -> dict[str, tuple[str, ...]]:
    """Return lists of words by name.

    Blocks are divided by empty lines. The first line of a block is the name of the list; its items
    follow, divided by commas where there are any, else by blanks.
    """
    lists = {}
    for block in text.strip().split("\n\n"):
        name, _, body = block.partition("\n")
        items = body.split(",") if "," in body else body.split()
        lists[name] = tuple(" ".join(item.split()) for item in items)
    return lists
