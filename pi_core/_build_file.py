"""The file ``pi-build.toml``: its form, and its faults, each named with the file and the key."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from .errors import BuildError
from .messages import ThinkingLevel

FILE_NAME: Final = "pi-build.toml"
LIMITS: Final = "limits"
"""The plugin that the table ``[limits]`` stands for."""

_Name: TypeAlias = Annotated[str, Field(min_length=1)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True)


class BuildSettings(_Table):
    """The table ``[build]``: what the agents of a build are made with unless told otherwise.

    :param name: of the build, for people.
    :param model: ``provider/id``, or what a plugin of the build resolves; without one the plugins look for one.
    :param base_url: address of a server for the model, and ``api`` the protocol it speaks.
    :param tools: names of tools, ``owner/name`` works too; ``None`` for all of the build's plugins.
    :param system_prompt: the text; the file of ``system_prompt_file`` is read into it.
    :param environment: names that must be set when the build is loaded.
    """

    name: _Name
    model: _Name | None = None
    base_url: _Name | None = None
    api: _Name | None = None
    thinking: ThinkingLevel = "off"
    tools: list[_Name] | None = None
    system_prompt: str | None = None
    system_prompt_file: _Name | None = None
    environment: list[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]] = []


class PluginEntry(_Table):
    """A table of ``[[plugins]]``.

    :param version: PEP 440 specifier for its distribution, such as ``~=1.2``; any version without one.
    :param distribution: who offers the plugin; without it the framework itself, or else the one that is installed.
    :param options: the plugin's own options.
    """

    name: _Name
    version: str | None = None
    distribution: _Name | None = None
    options: dict[str, Any] = {}

    @field_validator("version")
    @classmethod
    def _check_version(cls, value: str | None) -> str | None:
        if value is not None:
            from packaging.specifiers import InvalidSpecifier, SpecifierSet

            try:
                SpecifierSet(value)
            except InvalidSpecifier:
                raise ValueError(
                    f"'{value}' is no version specifier; write it as '==1.2.3', '~=1.2' or '>=1,<2'"
                ) from None
        return value

    def accepts(self, version: str) -> bool:
        """Whether an installed version is one that is wanted."""
        if not self.version:
            return True
        from packaging.specifiers import SpecifierSet

        return SpecifierSet(self.version).contains(version, prereleases=True)


class _Limits(_Table):
    turns: Annotated[int, Field(ge=1)] | None = None
    cost_usd: Annotated[float, Field(gt=0)] | None = None
    seconds: Annotated[float, Field(gt=0)] | None = None


class _Document(_Table):
    build: BuildSettings
    plugins: list[PluginEntry] = []
    block: list[_Name] = []
    conflicts: dict[str, _Name] = {}
    limits: _Limits | None = None


@dataclass(frozen=True, slots=True)
class BuildFile:
    """A build file that was read.

    :param plugins: in call order; ``[limits]`` has become its plugin, the last one if it is not listed.
    :param block: plugin and distribution names that are never imported.
    :param conflicts: which plugin has a name that several own.
    """

    path: Path
    build: BuildSettings
    plugins: tuple[PluginEntry, ...]
    block: frozenset[str]
    conflicts: Mapping[str, str]

    @property
    def lock_path(self) -> Path:
        """Where its lock is."""
        return self.path.with_suffix(".lock")

    @property
    def names(self) -> list[str]:
        """The names of its plugins, in call order."""
        return [entry.name for entry in self.plugins]


def read_build_file(path: Path) -> BuildFile:
    """Read and check a build file, and the system prompt it names.

    :param path: the file, or the folder it is in.
    :raises BuildError: it cannot be read or something in it is wrong; names every fault with its key.
    """
    if path.is_dir():
        path = path / FILE_NAME
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise BuildError(f"There is no build file {path}. Write one with: pi build new {path}") from None
    except OSError as error:
        raise BuildError(f"{path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BuildError(f"{path} is not TOML: {error}") from None
    try:
        document = _Document.model_validate(data)
    except ValidationError as error:
        raise BuildError(_listed(path, list(_faults(error, data)))) from None
    if faults := list(_contradictions(document)):
        raise BuildError(_listed(path, faults))
    return BuildFile(
        path,
        _with_prompt(path, document.build),
        tuple(_with_limits(document)),
        frozenset(document.block),
        document.conflicts,
    )


def _with_prompt(path: Path, build: BuildSettings) -> BuildSettings:
    if build.system_prompt_file is None:
        return build
    prompt = path.parent / build.system_prompt_file
    try:
        text = prompt.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BuildError(f"{path}: build.system_prompt_file: {prompt}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise BuildError(f"{path}: build.system_prompt_file: {prompt} is not UTF-8 text: {error}") from None
    return build.model_copy(update={"system_prompt": text})


def _with_limits(document: _Document) -> Iterator[PluginEntry]:
    options = None if document.limits is None else document.limits.model_dump(exclude_none=True)
    for entry in document.plugins:
        yield entry.model_copy(update={"options": options}) if entry.name == LIMITS and options else entry
    if options and LIMITS not in {entry.name for entry in document.plugins}:
        yield PluginEntry(name=LIMITS, options=options)


def _contradictions(document: _Document) -> Iterator[str]:
    names: set[str] = set()
    for position, entry in enumerate(document.plugins):
        key = f"plugins[{position}]"
        if entry.name in names:
            yield f"{key}.name: plugin '{entry.name}' is listed twice; its place in the list is its place in the calls"
        names.add(entry.name)
        if entry.name in document.block:
            yield f"{key}.name: plugin '{entry.name}' is blocked too; take it out of one of the two lists"
    if document.limits is not None:
        if any(entry.name == LIMITS and entry.options for entry in document.plugins):
            yield f"limits: plugin '{LIMITS}' has options in [[plugins]] too; keep one of the two"
        names.add(LIMITS)
    for name, plugin in document.conflicts.items():
        if plugin not in names:
            yield f"conflicts.{name}: plugin '{plugin}' is not one of [[plugins]]" + _hint(plugin, names)
    if document.build.system_prompt is not None and document.build.system_prompt_file is not None:
        yield "build.system_prompt_file: there is a system_prompt too; keep one of the two"
    for position, tool in enumerate(document.build.tools or ()):
        if tool in (document.build.tools or ())[:position]:
            yield f"build.tools[{position}]: '{tool}' is named twice"


def _faults(error: ValidationError, data: Mapping[str, Any]) -> Iterator[str]:
    for fault in error.errors(include_url=False):
        loc = fault["loc"]
        message = fault["msg"].removeprefix("Value error, ")
        if fault["type"] == "extra_forbidden":
            known = _known_keys(loc[:-1])
            message = f"there is no such key{_hint(str(loc[-1]), known)} (known here: {', '.join(known)})"
        elif fault["type"] == "missing":
            message = "is missing"
        yield f"{_key(loc, data)}: {message}"


def _known_keys(loc: tuple[int | str, ...]) -> list[str]:
    tables: dict[str, type[BaseModel]] = {"build": BuildSettings, "plugins": PluginEntry, "limits": _Limits}
    return list(tables.get(str(loc[0]) if loc else "", _Document).model_fields)


def _key(loc: tuple[int | str, ...], data: Mapping[str, Any]) -> str:
    """Write a place as ``plugins[1].version``, with the name of the plugin when it has one."""
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    if loc[:1] == ("plugins",) and len(loc) > 1 and isinstance(loc[1], int):
        entry = data["plugins"][loc[1]]
        if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
            text += f" (plugin '{entry['name']}')"
    return text


def _hint(word: str, known: list[str] | set[str]) -> str:
    close = difflib.get_close_matches(word, sorted(known), n=1)
    return f", did you mean '{close[0]}'?" if close else ""


def _listed(path: Path, faults: list[str]) -> str:
    return "\n".join(f"{path}: {fault}" for fault in faults)
