"""The first start, keys that are pasted, trust, and which session it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pi_core import ConfigError, user_message
from pi_plugins.coding_agent import AgentSession, Prepared, create_session, prepare_session
from pi_plugins.config.trust import saved_trust
from pi_plugins.models import ModelRuntime, _servers
from pi_plugins.modes.interactive.api_keys import check_key, login, looks_like_key, provider_of_key
from pi_plugins.modes.interactive.first_start import has_no_model
from pi_plugins.modes.interactive.starting import choose_session, start_session, trust_question
from pi_plugins.providers import _headers
from pi_plugins.sessions import Session, sessions_dir

from ..model_server import Reply, model_server
from .at_work import build_of, options_in
from .fake_ui import FakeUi

KEY = "gsk_0123456789abcdefghij"
REFUSED = Reply(status=401, error={"error": {"message": f"Invalid API key: {KEY}"}})


@pytest.fixture(autouse=True)
def no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that run on this machine are not found, and one on loopback needs a key as any other does."""
    monkeypatch.setattr(_servers, "LOCAL_SERVERS", ())
    monkeypatch.setattr(_headers, "is_loopback", lambda url: False)


def groq_at(folder: Path, base_url: str) -> None:
    (folder / "agent").mkdir(exist_ok=True)
    models = {"providers": {"groq": {"baseUrl": base_url, "api": "openai-completions"}}}
    (folder / "agent" / "models.json").write_text(json.dumps(models), encoding="utf-8")


def runtime_in(folder: Path) -> ModelRuntime:
    return ModelRuntime(agent_dir=folder / "agent", environ={"HOME": str(folder)})


def stored(folder: Path) -> dict[str, Any]:
    file = folder / "agent" / "auth.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return found


async def prepared_in(folder: Path, **options: Any) -> Prepared:
    return await prepare_session(options_in(folder, **options), build_of(model=None))


async def start(ui: FakeUi, prepared: Prepared) -> AgentSession | None:
    session = await start_session(ui, prepared, lambda: create_session(prepared=prepared))
    assert ui.done()
    return session


@pytest.mark.parametrize(
    ("key", "provider"),
    [
        ("sk-ant-api03-x", "anthropic"),
        ("sk-or-v1-x", "openrouter"),
        ("sk-proj-x", "openai"),
        ("AIzaSyX", "google"),
        ("gsk_x", "groq"),
        ("xai-x", "xai"),
        ("sk-x", None),
        ("x", None),
    ],
)
def test_a_key_says_whose_it_is_only_where_that_is_sure(key: str, provider: str | None) -> None:
    assert provider_of_key(key) == provider


def test_words_that_look_like_keys() -> None:
    assert looks_like_key(KEY)
    assert not looks_like_key("gsk_")
    assert not looks_like_key("hf_hub_download")
    assert not looks_like_key("word")


async def test_a_key_that_works_is_stored_for_its_owner_alone(tmp_path: Path) -> None:
    with model_server([Reply("ok")]) as server:
        groq_at(tmp_path, server.base_url)
        ui = FakeUi(KEY)
        assert await login(ui, runtime_in(tmp_path)) == "groq"
    assert ui.asked[0].secret
    assert stored(tmp_path) == {"groq": {"type": "api_key", "key": KEY}}
    assert (tmp_path / "agent" / "auth.json").stat().st_mode & 0o777 == 0o600
    assert server.requests[0]["headers"]["authorization"] == f"Bearer {KEY}"
    assert ui.texts == [f"The key of groq is stored in {tmp_path / 'agent' / 'auth.json'}. It works."]


async def test_a_key_that_is_refused_is_not_stored_unless_the_user_says_so(tmp_path: Path) -> None:
    with model_server([REFUSED, REFUSED]) as server:
        groq_at(tmp_path, server.base_url)
        runtime = runtime_in(tmp_path)
        ui = FakeUi(KEY, False, KEY, True)
        assert await login(ui, runtime, "groq") is None
        assert stored(tmp_path) == {}
        assert ui.asked[1].title == "groq does not accept the key"
        assert await login(ui, runtime, "groq") == "groq"
        assert "groq" in stored(tmp_path)


@pytest.mark.parametrize(
    ("status", "text", "accepted"),
    [
        (401, "no", False),
        (403, "no", False),
        (400, "API key not valid", False),
        (400, "unknown model", None),
        (429, "quota", None),
    ],
)
async def test_only_what_is_about_the_key_refuses_it(
    tmp_path: Path, status: int, text: str, accepted: bool | None
) -> None:
    with model_server([Reply(status=status, error={"error": {"message": text}})]) as server:
        groq_at(tmp_path, server.base_url)
        assert (await check_key(runtime_in(tmp_path), "groq", KEY)).accepted is accepted


async def test_no_text_shows_the_key(tmp_path: Path) -> None:
    with model_server([REFUSED]) as server:
        groq_at(tmp_path, server.base_url)
        ui = FakeUi(KEY, True)
        await login(ui, runtime_in(tmp_path), "groq")
    shown = [asked.title + asked.message for asked in ui.asked] + ui.texts + [text or "" for _, text in ui.statuses]
    assert not any(KEY in text for text in shown)


async def test_a_key_that_cannot_be_checked_is_stored_and_said(tmp_path: Path) -> None:
    with model_server([Reply(status=500, error="down")]) as server:
        groq_at(tmp_path, server.base_url)
        ui = FakeUi(KEY)
        assert await login(ui, runtime_in(tmp_path)) == "groq"
    text, level = ui.shown[0]
    assert level == "warning"
    assert "It could not be checked: " in text


async def test_a_key_of_nobody_known_asks_whose_it_is(tmp_path: Path) -> None:
    with model_server([Reply("ok")]) as server:
        groq_at(tmp_path, server.base_url)
        ui = FakeUi("sk-0123456789", "groq")
        assert await login(ui, runtime_in(tmp_path)) == "groq"


@pytest.mark.parametrize("typed", [None, "", "   "])
async def test_without_a_key_nothing_is_stored(tmp_path: Path, typed: str | None) -> None:
    assert await login(FakeUi(typed), runtime_in(tmp_path)) is None
    assert stored(tmp_path) == {}


async def test_what_cannot_be_a_key_is_refused(tmp_path: Path) -> None:
    ui = FakeUi("my key is gsk_x")
    assert await login(ui, runtime_in(tmp_path)) is None
    assert ui.shown[0][1] == "error"


async def test_a_provider_without_a_known_model_cannot_be_checked(tmp_path: Path) -> None:
    checked = await check_key(runtime_in(tmp_path), "nobody", KEY)
    assert checked.accepted is None


async def test_without_a_model_a_key_leads_to_a_session(tmp_path: Path) -> None:
    with model_server([Reply("ok"), Reply("hello")]) as server:
        groq_at(tmp_path, server.base_url)
        prepared = await prepared_in(tmp_path)
        ui = FakeUi("Paste an API key", KEY)
        session = await start(ui, prepared)
        assert session is not None
        await session.prompt("hi")
        assert session.answer_text() == "hello"
        assert session.model.provider == "groq"
        await session.close()


async def test_the_choice_comes_again_until_there_is_a_model_or_the_user_leaves(tmp_path: Path) -> None:
    prepared = await prepared_in(tmp_path)
    ui = FakeUi("server", "small model", True, "Paste", None, "Leave")
    assert await start(ui, prepared) is None
    assert [asked.kind for asked in ui.asked] == ["select", "select", "confirm", "select", "input", "select"]
    assert "pip install pi-local" in ui.texts[2]
    assert ui.texts[1] == "There is still no model that can be used"


async def test_leaving_the_choice_leaves(tmp_path: Path) -> None:
    assert await start(FakeUi(None), await prepared_in(tmp_path)) is None


async def test_what_was_said_of_a_failed_start_is_not_said_twice(tmp_path: Path) -> None:
    with model_server([Reply("ok")]) as server:
        groq_at(tmp_path, server.base_url)
        (tmp_path / "agent" / "settings.json").write_text('{"defaultProvider": "groq", "defaultModel": "x"}')
        prepared = await prepared_in(tmp_path)
        session = await start(FakeUi("Paste", KEY), prepared)
        assert session is not None
        await session.close()
    assert len(prepared.notices) == len(set(prepared.notices))


async def test_a_model_that_was_named_and_is_not_there_is_a_failure(tmp_path: Path) -> None:
    prepared = await prepared_in(tmp_path, model="nothing-like-that")
    assert not await has_no_model(prepared)
    with pytest.raises(ConfigError, match="nothing-like-that"):
        await start(FakeUi(), prepared)


def a_session(prepared: Prepared, text: str, cwd: Path) -> Path:
    folder = sessions_dir(cwd, prepared.settings, prepared.environ, agent_dir=prepared.agent_dir)
    with Session.create(cwd, directory=folder) as made:
        made.append_message(user_message(text))
        assert made.path is not None
        return made.path


async def test_the_session_to_go_on_with_is_chosen(tmp_path: Path) -> None:
    prepared = await prepared_in(tmp_path)
    path = a_session(prepared, "about cats", prepared.cwd)
    assert await choose_session(FakeUi("cats"), prepared)
    assert prepared.options.session == str(path)


async def test_a_session_of_another_folder_is_copied_or_not(tmp_path: Path) -> None:
    prepared = await prepared_in(tmp_path)
    path = a_session(prepared, "about cats", tmp_path)
    assert not await choose_session(FakeUi("cats", False), prepared)
    assert prepared.options.fork is None
    assert await choose_session(FakeUi("cats", True), prepared)
    assert prepared.options.fork == str(path)


async def test_a_session_that_another_terminal_writes_is_copied(tmp_path: Path) -> None:
    prepared = await prepare_session(options_in(tmp_path, continue_last=True), build_of())
    path = a_session(prepared, "about cats", prepared.cwd)
    with Session.open(path):
        ui = FakeUi(True)
        session = await start(ui, prepared)
        assert session is not None
        assert f"writes {path}" in ui.asked[0].message
        assert session.store.path != path
        assert len(session.agent.state.messages) == 1
        await session.close()


async def test_a_session_that_another_terminal_writes_can_be_left_alone(tmp_path: Path) -> None:
    prepared = await prepare_session(options_in(tmp_path, continue_last=True), build_of())
    with Session.open(a_session(prepared, "about cats", prepared.cwd)):
        assert await start(FakeUi(False), prepared) is None


@pytest.mark.parametrize(
    ("answer", "trusted", "saved"),
    [
        ("Trust it", True, True),
        ("Trust it this time", True, None),
        ("Not this time", False, None),
        ("Never", False, False),
    ],
)
async def test_the_user_is_asked_about_a_project(
    tmp_path: Path, answer: str, trusted: bool, saved: bool | None
) -> None:
    options = options_in(tmp_path)
    folder = tmp_path / "project" / ".pi"
    folder.mkdir()
    (folder / "settings.json").write_text("{}", encoding="utf-8")
    ui = FakeUi(answer)
    prepared = await prepare_session(options, build_of(), ask_trust=trust_question(ui))
    assert prepared.trusted is trusted
    assert saved_trust(tmp_path / "project", agent_dir=tmp_path / "agent") is saved
    assert str(folder / "settings.json") in ui.asked[0].message
    assert ui.asked[0].labels[ui.asked[0].selected] == "Not this time"
