"""What a terminal can do beyond text, as far as its environment tells; settings have the last word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from pi_plugins.config.settings import TerminalSettings

Protocol: TypeAlias = Literal["kitty", "iterm2", "none"]
"""The way a terminal takes images."""

_KITTY: Final = ("kitty", "ghostty")
_ITERM: Final = ("iTerm.app", "WezTerm")
_LINKING: Final = (*_ITERM, "vscode", "ghostty")
_LINKING_VARIABLES: Final = ("KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "DOMTERM")
_LINKING_TERMS: Final = ("xterm-kitty", "xterm-ghostty", "foot", "alacritty", "wezterm")


def links(settings: TerminalSettings, environ: Mapping[str, str]) -> bool:
    """Whether links are made that can be clicked: where the terminal is known to take them, or as the setting says."""
    if settings.hyperlinks != "auto":
        return settings.hyperlinks
    if _is_multiplexed(environ):
        return False
    vte = environ.get("VTE_VERSION", "")
    return (
        environ.get("TERM_PROGRAM") in _LINKING
        or any(environ.get(name) for name in _LINKING_VARIABLES)
        or environ.get("TERM", "").startswith(_LINKING_TERMS)
        or (vte.isdecimal() and int(vte) >= 5000)
    )


def images(settings: TerminalSettings, environ: Mapping[str, str]) -> Protocol:
    """Return the way images are drawn; ``none`` where they are only named."""
    if not settings.show_images:
        return "none"
    if settings.images != "auto":
        return settings.images
    if _is_multiplexed(environ):
        return "none"
    term, program = environ.get("TERM", ""), environ.get("TERM_PROGRAM", "")
    if environ.get("KITTY_WINDOW_ID") or program in _KITTY or term.removeprefix("xterm-") in _KITTY:
        return "kitty"
    return "iterm2" if program in _ITERM else "none"


def _is_multiplexed(environ: Mapping[str, str]) -> bool:
    """Whether another program stands between, which keeps such things to itself."""
    return bool(environ.get("TMUX") or environ.get("STY")) or environ.get("TERM", "").startswith(("tmux", "screen"))


__all__ = ["Protocol", "images", "links"]
