"""Plug-ins: objects of the user's that take part in an experiment, by file or by entry point.

`FILE.py:NAME` names an object in a file; a relative path starts at the folder where `spikein` is
started, as every path in an experiment file does. Installed packages offer objects under the groups
`spikein.detectors`, `spikein.datasets`, `spikein.sources`, `spikein.executors` and
`spikein.unlearning`.
"""

from inject.plugins.files import FileReference as FileReference
from inject.plugins.files import file_reference as file_reference
from inject.plugins.files import find_plugin as find_plugin
from inject.plugins.files import load_file as load_file
from inject.plugins.plugin import Group as Group
from inject.plugins.plugin import InstalledPlugin as InstalledPlugin
from inject.plugins.plugin import Plugin as Plugin
from inject.plugins.plugin import PluginKind as PluginKind
from inject.plugins.plugin import installed_plugins as installed_plugins
from inject.plugins.plugin import load_installed as load_installed
from inject.plugins.plugin import require_same_source as require_same_source
