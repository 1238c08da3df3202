"""Plugins that are a file or a folder and no installed distribution: named on the command line or by a project."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import zlib
from pathlib import Path
from types import ModuleType

from ._loader import Offer
from ._manager import implements


def file_offer(path: str | os.PathLike[str]) -> Offer:
    """Return the plugin in a file, or in a folder with an ``__init__.py``; its name is that of the file or folder.

    The plugin is what the module calls ``plugin`` (an object or a class), else the module itself when it implements a
    hook, else its only class that does.
    """
    file = Path(os.path.abspath(os.path.expanduser(path)))
    source = file / "__init__.py" if file.is_dir() else file
    return Offer(file.stem, str(file), "", "", lambda: _plugin_of(_module_of(source, file.stem)))


def _module_of(source: Path, name: str) -> ModuleType:
    # Two files of one name are two modules.
    unique = f"pi_plugin_file_{name}_{zlib.crc32(os.fsencode(source)):08x}"
    spec = importlib.util.spec_from_file_location(unique, source)
    if spec is None or spec.loader is None:
        raise ImportError(f"{source} is not a Python file")
    module = sys.modules[unique] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[unique]
        raise
    return module


def _plugin_of(module: ModuleType) -> object:
    if hasattr(module, "plugin"):
        found: object = module.plugin
        return found
    if implements(module):
        return module
    classes = [kind for kind in vars(module).values() if inspect.isclass(kind) and kind.__module__ == module.__name__]
    plugins = [kind for kind in classes if implements(kind)]
    if len(plugins) != 1:
        raise ImportError(f"expected one class or functions marked with @hookimpl, found {len(plugins)} such classes")
    return plugins[0]
