"""`hf://…` in an experiment file: a hub file, fetched before anything is read.

`hf://datasets/OWNER/NAME@REVISION/PATH` names files of any dataset (`inject.hub.address`).
`hf://presets/PATH` names the output of `spikein data fetch`, stored once in the user's cache: with
`data=hf://presets` a preset runs without a data folder. These files are read and identified by
content like local files, so that a run has the same steps either way.
"""

from inject.errors import InputError, did_you_mean
from inject.hub.address import SCHEME, fetch_address, fits, parse_address
from spikein.config.yaml_document import KeyPath, YamlDocument, dotted

PRESETS = f"{SCHEME}presets"
"""The layout that the presets read, as a data folder."""


def with_hub_files(document: YamlDocument) -> tuple[YamlDocument, list[InputError]]:
    """Return the document with every address replaced by a local path, and the problems."""
    problems: list[InputError] = []
    local_paths: dict[str, str] = {}

    def replaced(text: str, path: KeyPath) -> str:
        if not text.startswith(SCHEME):
            return text
        try:
            if text not in local_paths:
                local_paths[text] = local_path(text)
        except InputError as error:
            # The same address may occur many times.
            local_paths[text] = text
            place = f"{document.place(path)}: {dotted(path)}"
            problems.append(InputError(str(error), where=place))
        return local_paths[text]

    return document.with_texts(replaced), problems


def local_path(text: str) -> str:
    """Return the local path of an address, fetched if needed; any other text unchanged.

    Raises:
        InputError: for a malformed address, or one that the hub cannot serve.
    """
    if text == PRESETS or text.startswith(f"{PRESETS}/"):
        return _fetch_layout_file(text.removeprefix(PRESETS).strip("/"))
    address = parse_address(text)
    if address is not None:
        return str(fetch_address(address)[0])
    if "://" in text:
        raise InputError(
            "is an address outside the hub",
            where=text,
            allowed="a file, a folder, a glob, or hf://datasets/OWNER/NAME/FILE",
            hint="Download it first.",
        )
    return text


def _fetch_layout_file(pattern: str) -> str:
    """Fetch the datasets that have a file of this name in the layout; return its path."""
    from inject.files import cache_folder
    from inject.public_data.catalogue import data_sets
    from inject.public_data.fetch import fetch

    matching = [
        item for item in data_sets() if any(fits(file.path, pattern) for file in item.files)
    ]
    if not matching or not pattern:
        names = [file.path for item in data_sets() for file in item.files]
        raise InputError(
            f"no file that the presets read has this name.{did_you_mean(pattern, names)}",
            where=f"{PRESETS}/{pattern}",
            hint="`spikein data list` lists them.",
        )
    folder = cache_folder() / "data"
    for data_set in matching:
        if data_set.terms and not all((folder / file.path).exists() for file in data_set.files):
            raise InputError(
                f"{data_set.name} has terms, which must be accepted first",
                where=f"{PRESETS}/{pattern}",
                hint=f"`spikein data fetch {data_set.name} --to {folder}` shows them.",
            )
    fetch(matching, folder)
    return str(folder / pattern)
