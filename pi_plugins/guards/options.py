"""The options of the permission guard: its rules, and what holds where no rule does."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

Effect: TypeAlias = Literal["allow", "ask", "deny"]
"""What becomes of a call."""


def _several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Pattern: TypeAlias = Annotated[str, Field(min_length=1)]
Patterns: TypeAlias = Annotated[tuple[Pattern, ...], BeforeValidator(_several)]
"""One pattern, or a list of which any may match."""


class _Options(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


class Rule(_Options):
    """What becomes of calls of a kind.

    :param effect: what becomes of them.
    :param tool: pattern of the tool's name.
    :param path: patterns of files: relative to the working directory, absolute, from ``~``, or a bare name, which is
        meant wherever it stands. ``*`` stays within a folder, ``**`` does not.
    :param command: patterns of a command of the shell, as a whole; ``*`` is any text.
    :param reason: what the model is told when such a call is denied.
    """

    effect: Effect
    tool: Pattern = "*"
    path: Patterns | None = None
    command: Patterns | None = None
    reason: str | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.path is not None and self.command is not None:
            raise ValueError("a rule is about path or about command: write two rules")
        return self


class PermissionOptions(_Options):
    """Options of the plugin. As they are by default, everything is allowed.

    :param mode: what becomes of a call that no rule is about.
    :param rules: a rule that denies always wins; of the others the first one that matches.
    :param roots: folders in which file tools may work; none means everywhere.
    :param outside: what becomes of files elsewhere, unless a rule with a path allows them.
    :param non_interactive: what becomes of a call to be asked about when there is nobody to ask.
    :param cwd: the directory that relative paths start from; the process's own by default, as with the tools.
    """

    mode: Effect = "allow"
    rules: tuple[Rule, ...] = ()
    roots: Patterns = ()
    outside: Literal["ask", "deny"] = "ask"
    non_interactive: Literal["allow", "deny"] = "deny"
    cwd: str | None = None
