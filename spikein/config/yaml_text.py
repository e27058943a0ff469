"""Plain values as YAML text that every reader, of YAML 1.1 or 1.2, takes for the same values."""

from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import SafeRepresenter

# Readers of YAML 1.1 take some of these for true and false.
_NOT_PLAIN = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")


def block_text(value: Any) -> str:
    """Return a value with one key a line, in the order given."""
    return _text(value, flow=False, width=100)


def flow_text(value: Any) -> str:
    """Return a value in one line, as it may stand inside `[ ]`: `{fixed: 4}`."""
    return _text(value, flow=True, width=10_000).removesuffix("...\n").strip()


class _Representer(SafeRepresenter):
    """Quotes every text that is not a plain word, and writes floats with a point."""

    # Of its own, so that other users of ruamel.yaml keep theirs.
    yaml_representers = SafeRepresenter.yaml_representers.copy()

    def represent_text(self, text: str) -> ScalarNode:
        """Represent a text."""
        plain = text.isidentifier() and text.lower() not in _NOT_PLAIN
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')

    def represent_number(self, number: float) -> ScalarNode:
        """Represent a float; `1e-05` is a text in YAML 1.1, `1.0e-05` a number in both."""
        text = repr(number)
        if "e" in text and "." not in text:
            text = text.replace("e", ".0e", 1)
        return self.represent_scalar("tag:yaml.org,2002:float", text)


_Representer.add_representer(str, _Representer.represent_text)
_Representer.add_representer(float, _Representer.represent_number)


def _text(value: Any, *, flow: bool, width: int) -> str:
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.Representer = _Representer
    yaml.default_flow_style = flow
    yaml.allow_unicode = True
    yaml.width = width
    yaml.sort_base_mapping_type_on_output = False
    stream = StringIO()
    yaml.dump(value, stream)
    return stream.getvalue()
