"""Checks of a plugin, and calls of a single hook."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from .._loader import installed
from .._manager import HookManager, plugin_name
from ..context import RunContext, SelectionContext
from ..hooks import Hooks


def assert_plugin_contract(plugin: object, *offering: object) -> None:
    """Check that a plugin can be registered, taken out and registered again, and that its entry point is light.

    :param offering: plugins that offer hooks which it implements.
    :raises PluginLoadError: it implements no hook, misspells one, wants an argument the hook does not have, or is async
        on a sync hook.
    :raises AssertionError: the module its entry point names imports more at top level than the standard library,
        ``pi_core``, pydantic and its own package, so that every start of ``pi`` is slow.
    """
    name = plugin_name(plugin)
    manager = HookManager()
    manager.register_all(offering)
    manager.add_offered(plugin, name)
    manager.register(plugin, name)
    manager.unregister(plugin)
    manager.register(plugin, name)
    module = plugin.__name__ if inspect.ismodule(plugin) else type(plugin).__module__
    if module in {offer.target.partition(":")[0] for offer in installed()}:
        heavy = heavy_imports(module)
        assert not heavy, f"importing {module} imports {', '.join(heavy)}: import them in the functions that need them"


def heavy_imports(module: str) -> list[str]:
    """Return the packages that a module imports beside the standard library, what ``pi_core`` imports, and its own.

    :raises ImportError: it cannot be imported.
    """
    code = (
        "import sys, importlib, pi_core; [getattr(pi_core, name) for name in pi_core.__all__]; "
        "before = set(sys.modules); importlib.import_module(sys.argv[1]); "
        "new, old = ({name.partition('.')[0] for name in names} for names in (sys.modules, before)); print(*new - old)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", code, module], capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode:
        raise ImportError(f"{module} cannot be imported:\n{done.stderr}")
    own = {module.partition(".")[0], "pi_core"}
    return sorted(name for name in done.stdout.split() if name not in own | sys.stdlib_module_names)


async def run_hook(name: str, /, *plugins: object, **arguments: Any) -> Any:
    """Call one hook of some plugins and return what their answers combine to.

    :param plugins: with the plugin that offers the hook, when the core does not have it.
    :param arguments: the hook's; a fresh ``ctx`` is made where it takes one and none is given.
    :raises KeyError: no such hook.
    :raises HookError: an implementation raised where that fails the run.
    """
    hooks = Hooks.over(*plugins)
    wanted = {hook: arguments for hook, arguments, _ in hooks.specifications()}[name]
    if "ctx" in wanted and "ctx" not in arguments:
        arguments["ctx"] = SelectionContext() if name == "resolve_model" else RunContext()
    method: Callable[..., Any] = getattr(hooks, name, None) or (lambda **given: hooks.call(name, **given))
    answer = method(**arguments)
    return await answer if inspect.isawaitable(answer) else answer
