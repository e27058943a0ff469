"""Plug-ins: objects of the user's that take part in an experiment, by file or by entry point.

`FILE.py:NAME` names an object in a file; a relative path starts at the folder where `spikein` is
started, as every path in an experiment file does. Installed packages offer objects under the groups
`spikein.detectors`, `spikein.datasets`, `spikein.sources`, `spikein.executors` and
`spikein.unlearning`.
"""

from inject.plugins.files import FileReference, file_reference, find_plugin, load_file
from inject.plugins.plugin import (
    Group,
    InstalledPlugin,
    Plugin,
    PluginKind,
    installed_plugins,
    load_installed,
    require_same_source,
)

__all__ = [
    "FileReference",
    "Group",
    "InstalledPlugin",
    "Plugin",
    "PluginKind",
    "file_reference",
    "find_plugin",
    "installed_plugins",
    "load_file",
    "load_installed",
    "require_same_source",
]
