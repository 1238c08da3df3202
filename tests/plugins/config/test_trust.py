"""Whether a project's configuration is used."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from pi_core import Build, ConfigError, hookimpl
from pi_plugins.config import ConfigPlugin, Settings, Trust, decide_trust, needs_trust, save_trust
from pi_plugins.config.trust import TrustChoice, saved_trust, trust_decisions

from .conftest import Places

TRUSTED = Settings(default_project_trust="always")
REFUSED = Settings(default_project_trust="never")


class Says:
    """A plugin with an opinion about projects."""

    def __init__(self, answer: bool | Exception | None) -> None:
        self.answer = answer
        self.asked: list[Path] = []

    @hookimpl
    async def project_trust(self, cwd: Path) -> bool | None:
        self.asked.append(cwd)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class User:
    """A user who gives one answer."""

    def __init__(self, answer: TrustChoice | bool | None) -> None:
        self.answer = answer
        self.questions: list[str] = []

    async def __call__(self, question: str) -> TrustChoice | bool | None:
        self.questions.append(question)
        return self.answer


def decide(places: Places, *plugins: object, **options: Any) -> Trust:
    hooks = Build([ConfigPlugin(), *plugins], only=()).hooks if plugins else None
    return asyncio.run(decide_trust(places.cwd, environ=places.environ, hooks=hooks, **options))


@pytest.fixture
def project(places: Places) -> Places:
    """A project whose settings need trust."""
    places.of_project({"theme": "x"})
    return places


@pytest.mark.parametrize(
    "name",
    [
        ".pi/settings.json",
        ".pi/models.json",
        ".pi/plugins",
        ".pi/skills",
        ".pi/prompts",
        ".pi/themes",
        ".pi/SYSTEM.md",
        ".pi/APPEND_SYSTEM.md",
        ".agents/skills",
        "../.agents/skills",
    ],
)
def test_what_needs_trust(places: Places, name: str) -> None:
    assert needs_trust(places.cwd, environ=places.environ) == []
    path = Path(os.path.normpath(places.cwd / name))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch() if path.suffix else path.mkdir()
    assert needs_trust(places.cwd, environ=places.environ) == [path]


@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md", ".pi/notes.txt", "skills"])
def test_what_needs_none(places: Places, name: str) -> None:
    (places.cwd / name).touch()
    assert needs_trust(places.cwd, environ=places.environ) == []
    assert decide(places) == Trust(True, "nothing to trust")


def test_the_users_own_files_need_none(places: Places) -> None:
    (places.home / ".agents" / "skills").mkdir(parents=True)
    assert needs_trust(places.home, environ=places.environ) == []
    places.user({})
    inside = {**places.environ, "PI_CODING_AGENT_DIR": str(places.project)}
    places.of_project({})
    assert needs_trust(places.cwd, environ=inside) == []
    assert needs_trust(places.cwd, environ=places.environ) == [places.project_file]


@pytest.mark.parametrize("flag", [True, False])
def test_the_flag_decides_first_and_for_one_run(project: Places, flag: bool) -> None:
    save_trust(project.cwd, not flag, environ=project.environ)
    plugin, user = Says(not flag), User(not flag)
    settings = REFUSED if flag else TRUSTED
    trust = decide(project, plugin, flag=flag, settings=settings, ask=user)
    assert (trust.trusted, trust.source, trust.notice) == (flag, "flag", None)
    assert (plugin.asked, user.questions) == ([], [])
    assert saved_trust(project.cwd, environ=project.environ) is (not flag)


@pytest.mark.parametrize("answer", [True, False])
def test_a_plugin_decides_before_what_was_saved(project: Places, answer: bool) -> None:
    save_trust(project.cwd, not answer, environ=project.environ)
    plugin = Says(answer)
    trust = decide(project, plugin)
    assert (trust.trusted, trust.source) == (answer, "hook")
    assert plugin.asked == [project.cwd]


def test_plugins_without_an_opinion_leave_it_to_the_rest(project: Places) -> None:
    save_trust(project.cwd, True, environ=project.environ)
    assert decide(project, Says(None)).source == "saved"


def test_a_build_without_the_hook_leaves_it_to_the_rest(project: Places) -> None:
    deciding = decide_trust(project.cwd, environ=project.environ, hooks=Build(only=()).hooks)
    assert asyncio.run(deciding).source == "nobody"


def test_a_plugin_that_fails_means_no_and_is_named(project: Places) -> None:
    save_trust(project.cwd, True, environ=project.environ)
    trust = decide(project, Says(ValueError("out of order")))
    assert (trust.trusted, trust.source) == (False, "hook")
    assert trust.notice is not None
    assert trust.notice.startswith(f"Left out {project.project_file}: out of order")


def test_the_nearest_saved_decision_counts(project: Places) -> None:
    environ = project.environ
    save_trust(project.cwd.parent, False, environ=environ)
    assert decide(project, settings=TRUSTED).trusted is False
    save_trust(project.cwd, True, environ=environ)
    assert decide(project, settings=REFUSED) == Trust(True, "saved", (project.project_file,))
    save_trust(project.cwd, None, environ=environ)
    assert decide(project).trusted is False
    save_trust(project.cwd.parent, None, environ=environ)
    assert decide(project).source == "nobody"


def test_a_folder_is_trusted_under_all_of_its_names(project: Places, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(project.cwd)
    save_trust(tmp_path / "link", True, environ=project.environ)
    assert list(trust_decisions(environ=project.environ)) == [str(project.cwd)]
    project.cwd = tmp_path / "link"
    assert decide(project).source == "saved"


def test_null_in_the_file_is_no_decision(project: Places) -> None:
    (project.agent / "trust.json").write_text(f'{{"{project.cwd}": null, "{project.cwd.parent}": true}}')
    assert decide(project).trusted is True
    assert trust_decisions(environ=project.environ) == {str(project.cwd.parent): True}


@pytest.mark.parametrize("text", ["{", "[]", '{"/x": "yes"}', '{"/x": 1}'])
def test_saved_decisions_that_cannot_be_read_stop_everything(project: Places, text: str) -> None:
    file = project.agent / "trust.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(f"{file}:1")):
        decide(project, settings=TRUSTED)
    assert file.read_text() == text


@pytest.mark.parametrize(("settings", "trusted"), [(TRUSTED, True), (REFUSED, False)])
def test_the_setting_decides_when_nothing_else_does(project: Places, settings: Settings, trusted: bool) -> None:
    user = User(True)
    trust = decide(project, settings=settings, ask=user)
    assert (trust.trusted, trust.source, trust.notice) == (trusted, "settings", None)
    assert user.questions == []


def test_nobody_to_ask_means_no_and_the_notice_says_what_to_do(project: Places) -> None:
    (project.project / "plugins").mkdir()
    trust = decide(project)
    assert (trust.trusted, trust.source) == (False, "nobody")
    assert trust.notice is not None
    assert str(project.project_file) in trust.notice
    assert str(project.project / "plugins") in trust.notice
    assert "pi config trust" in trust.notice
    assert "--approve" in trust.notice


@pytest.mark.parametrize(
    ("answer", "trusted", "saved"),
    [
        (True, True, {"project": True}),
        ("trust", True, {"project": True}),
        ("trust-parent", True, {"": True}),
        ("once", True, {}),
        (False, False, {"project": False}),
        ("never", False, {"project": False}),
        ("not-now", False, {}),
        (None, False, {}),
    ],
)
def test_the_users_answer(
    project: Places, answer: TrustChoice | bool | None, trusted: bool, saved: dict[str, bool]
) -> None:
    user = User(answer)
    trust = decide(project, ask=user)
    assert trust.trusted is trusted
    assert (trust.notice is None) is (answer is not None)
    root = project.cwd.parent
    assert trust_decisions(environ=project.environ) == {str(root / name): value for name, value in saved.items()}
    (question,) = user.questions
    assert question.startswith(f"Do you trust {project.cwd}?")
    assert str(project.project_file) in question


def test_the_file_is_sorted_and_for_its_owner_only(places: Places) -> None:
    for name in ("b", "a", "c"):
        save_trust(Path(f"/{name}"), True, environ=places.environ)
    file = places.agent / "trust.json"
    assert file.read_text() == '{\n  "/a": true,\n  "/b": true,\n  "/c": true\n}\n'
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_saving_tells_whether_anything_changed(places: Places) -> None:
    changes = [save_trust(places.cwd, value, environ=places.environ) for value in (True, True, False, None, None)]
    assert changes == [True, False, True, True, False]
