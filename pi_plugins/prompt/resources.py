"""The resources of a prompt: where context files, skills, templates and system prompts come from, and which win."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from pi_core import Hooks
from pi_plugins.config.paths import expand, home_dir, project_dir

from ._filters import Filters
from ._places import Place, skill_files, template_files
from .context_files import load_context_files
from .files import PromptFile, read_file_or_warn
from .skills import Skill, load_skill
from .templates import Template, load_template

if TYPE_CHECKING:
    from pi_plugins.config import Settings

SYSTEM_FILE: Final = "SYSTEM.md"
"""The file of a configuration folder that replaces the default system prompt."""

APPEND_FILE: Final = "APPEND_SYSTEM.md"
"""The file of a configuration folder that is added to the system prompt."""

ResourceT = TypeVar("ResourceT", Skill, Template)


@dataclass(frozen=True, slots=True)
class Resources:
    """What was found for the prompts of one folder.

    :param context_files: from the most general to the one nearest to the folder.
    :param skills: one for each name.
    :param templates: one for each name.
    :param system_prompt: replaces the default system prompt.
    :param append: is added to the system prompt.
    :param skill_commands: whether skills can be called as ``/skill:name``.
    :param warnings: what was found and cannot be used, or only in part, and why.
    """

    context_files: tuple[PromptFile, ...] = ()
    skills: tuple[Skill, ...] = ()
    templates: tuple[Template, ...] = ()
    system_prompt: PromptFile | None = None
    append: PromptFile | None = None
    skill_commands: bool = True
    warnings: tuple[str, ...] = ()


async def load_resources(
    cwd: Path,
    *,
    agent_dir: Path,
    trusted: bool = False,
    settings: Settings | None = None,
    hooks: Hooks | None = None,
    no_context_files: bool = False,
    no_skills: bool = False,
    no_templates: bool = False,
    skill_paths: Sequence[str | os.PathLike[str]] = (),
    template_paths: Sequence[str | os.PathLike[str]] = (),
    environ: Mapping[str, str] | None = None,
) -> Resources:
    """Look for the resources of a folder. What cannot be used is left out and said in the warnings.

    Of two skills or templates of one name the first counts, in this order: those of ``skill_paths`` and
    ``template_paths``, of the project's settings, of the project's folders, of the user's settings, of the user's
    folders, of plugins. Of a project that is not trusted only the context files are read.

    :param cwd: the folder that the agent works in.
    :param agent_dir: the folder of the user's own configuration.
    :param settings: the arrays ``skills`` and ``prompts``; nothing is added or filtered without them.
    :param hooks: plugins that name further folders.
    :param no_context_files: leave context files out.
    :param no_skills: leave out skills that ``skill_paths`` does not name.
    :param no_templates: leave out templates that ``template_paths`` does not name.
    :param environ: environment variables, the process's own by default.
    :raises HookError: a plugin failed.
    """
    cwd, agent_dir = _absolute(cwd), _absolute(agent_dir)
    warnings: list[str] = []
    project = project_dir(cwd) if trusted else None
    folders = await _plugin_folders(cwd, hooks, environ, warnings) if not (no_skills and no_templates) else []
    bases = [*([(project, "project")] if project is not None else []), (agent_dir, "user")]

    skills = [_named(path, "--skill", cwd, environ) for path in skill_paths]
    skill_filters = Filters(() if settings is None else settings.skills, bases, "skills")
    if not no_skills:
        home = home_dir(environ)
        shared = _shared_skills(cwd, home) if trusted else []
        further = skill_filters.places(warnings)
        skills += _of(further, "project") + _in(project, "skills", "project") + shared
        skills += _of(further, "user") + _in(agent_dir, "skills", "user")
        skills += [Place(home / ".agents" / "skills", "user", loose=False)]
        skills += [Place(folder / "skills", origin) for origin, folder in folders]

    templates = [_named(path, "--prompt-template", cwd, environ) for path in template_paths]
    template_filters = Filters(() if settings is None else settings.prompts, bases, "prompts")
    if not no_templates:
        further = template_filters.places(warnings)
        templates += _of(further, "project") + _in(project, "prompts", "project")
        templates += _of(further, "user") + _in(agent_dir, "prompts", "user")
        templates += [Place(folder / "prompts", origin) for origin, folder in folders]

    return Resources(
        context_files=() if no_context_files else load_context_files(cwd, agent_dir, warnings),
        skills=_first_of_each_name(_load(skills, skill_files, load_skill, skill_filters, warnings), "skill", warnings),
        templates=_first_of_each_name(
            _load(templates, template_files, load_template, template_filters, warnings), "prompt template", warnings
        ),
        system_prompt=_system_file(SYSTEM_FILE, project, agent_dir, warnings),
        append=_system_file(APPEND_FILE, project, agent_dir, warnings),
        skill_commands=settings is None or settings.enable_skill_commands,
        warnings=tuple(warnings),
    )


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))


async def _plugin_folders(
    cwd: Path, hooks: Hooks | None, environ: Mapping[str, str] | None, warnings: list[str]
) -> list[tuple[str, Path]]:
    if hooks is None or "resources_discover" not in hooks.implemented():
        return []
    found = []
    for owner, folders in await hooks.call("resources_discover", cwd=cwd):
        for folder in (folders,) if isinstance(folders, str | os.PathLike) else folders:
            path = expand(os.fspath(folder), cwd, environ)
            if _is_folder(path):
                found.append((f"plugin {owner.plugin}", path))
            else:
                warnings.append(f"plugin {owner.plugin}: there is no folder {path} of skills and prompts")
    return found


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)


def _named(path: str | os.PathLike[str], option: str, cwd: Path, environ: Mapping[str, str] | None) -> Place:
    return Place(expand(os.fspath(path), cwd, environ), option, named=True, filtered=False)


def _of(places: Iterable[Place], owner: str) -> list[Place]:
    return [place for place in places if place.origin == f"{owner} settings"]


def _in(folder: Path | None, name: str, origin: str) -> list[Place]:
    return [] if folder is None else [Place(folder / name, origin)]


def _shared_skills(cwd: Path, home: Path) -> list[Place]:
    """Return the folders that several agents share, from ``cwd`` up to the root of the repository."""
    places = []
    for folder in (cwd, *cwd.parents):
        if folder != home:
            places.append(Place(folder / ".agents" / "skills", "project", loose=False))
        if os.path.lexists(folder / ".git"):
            break
    return places


def _load(
    places: Iterable[Place],
    find: Callable[[Place, list[str]], Iterator[Path]],
    load: Callable[[Path, str, list[str]], ResourceT | None],
    filters: Filters,
    warnings: list[str],
) -> Iterator[ResourceT]:
    """Load the resources of some places, each file once."""
    seen: set[str] = set()
    for place in places:
        for path in find(place, warnings):
            real = os.path.realpath(path)
            if real in seen or (place.filtered and not filters.allows(path)):
                continue
            seen.add(real)
            loaded = load(path, place.origin, warnings)
            if loaded is not None:
                yield loaded


def _first_of_each_name(found: Iterable[ResourceT], kind: str, warnings: list[str]) -> tuple[ResourceT, ...]:
    chosen: dict[str, ResourceT] = {}
    for resource in found:
        first = chosen.setdefault(resource.name, resource)
        if first is not resource:
            warnings.append(f"{resource.path}: the {kind} '{resource.name}' is not used, that of {first.path} is")
    return tuple(chosen.values())


def _system_file(name: str, project: Path | None, agent_dir: Path, warnings: list[str]) -> PromptFile | None:
    for folder in (project, agent_dir):
        if folder is not None and os.path.lexists(folder / name):
            return read_file_or_warn(folder / name, warnings)
    return None


__all__ = ["APPEND_FILE", "SYSTEM_FILE", "Resources", "load_resources"]
