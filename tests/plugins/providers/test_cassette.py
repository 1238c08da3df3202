"""Recorded provider traffic: what is kept, what is not, and that playing it back is strict."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from pi_core import Context, Model, StreamOptions, user_message
from pi_core.testing import Cassette, CassetteError
from pi_core.testing._secrets import names_a_secret
from pi_plugins.providers._connections import Connections
from pi_plugins.providers.openai_completions import OpenAICompletionsProvider

KEY = "sk-test-0123456789"


def sse(*deltas: str) -> bytes:
    chunks = [{"id": "c", "choices": [{"index": 0, "delta": {"content": delta}}]} for delta in deltas]
    chunks.append({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return b"".join(b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n" for chunk in chunks)


class Server:
    """A loopback server that says back the key it was given."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.requests.append({"path": self.path, "headers": dict(self.headers), "body": json.loads(body)})
                answer = sse("hé", "llo ", "to " + self.headers.get("authorization", "nobody"))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("set-cookie", "session=abcdefghij")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *arguments: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def ask(cassette: Cassette, url: str, *prompts: str, key: str = KEY) -> list[Any]:
    """Ask the provider of the chat completions API and return the last messages."""
    provider = OpenAICompletionsProvider(Connections(lambda: cassette.transport()))
    model = Model(id="m", api="openai-completions", provider="local", base_url=f"{url}/v1")

    async def main() -> list[Any]:
        messages = []
        for prompt in prompts:
            options = StreamOptions(api_key=key, max_retries=0)
            stream = provider.stream(model, Context(messages=[user_message(prompt)]), options)
            messages.append([event async for event in stream][-1].message)  # type: ignore[union-attr]
        return messages

    return asyncio.run(main())


def test_traffic_of_a_provider_is_recorded_and_played(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "kept" / "two.json"
    with Cassette(path, record=True) as cassette:
        recorded = ask(cassette, server.url, "one", "two")
    assert [message.text for message in recorded] == [f"héllo to Bearer {KEY}"] * 2
    server.close()
    with Cassette(path) as cassette:
        played = ask(cassette, server.url, "one", "two", key="another key")
    assert [message.text for message in played] == ["héllo to <secret>"] * 2
    text = path.read_text(encoding="utf-8")
    assert "0123456789" not in text
    assert "abcdefghij" not in text
    first = json.loads(text)["entries"][0]
    assert first["request"]["url"] == f"{server.url}/v1/chat/completions"
    assert ["authorization", "<secret>"] in first["request"]["headers"]
    assert not {"host", "user-agent", "content-length"} & {name for name, _ in first["request"]["headers"]}


def test_playing_is_strict(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "two.json"
    with Cassette(path, record=True) as cassette:
        ask(cassette, server.url, "one", "two")
    cassette = Cassette(path)
    ask(cassette, server.url, "two")
    with pytest.raises(CassetteError, match=r"chat/completions was recorded, but not asked for") as caught:
        cassette.close()
    assert str(caught.value).count("\n") == 1
    cassette = Cassette(path)
    message = ask(cassette, server.url, "one", "two", "three")[-1]
    assert (message.stop_reason, "record anew" in message.error_message) == ("error", True)
    with pytest.raises(CassetteError, match=r'"three".* is not in it \(left: nothing\)'):
        cassette.close()
    cassette = Cassette(path)
    assert ask(cassette, server.url, "one", "one")[-1].stop_reason == "error"
    assert len(server.requests) == 2


def test_a_failing_test_is_not_told_about_what_is_left(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    with Cassette(path, record=True) as cassette:
        ask(cassette, server.url, "one")
    with pytest.raises(ZeroDivisionError), Cassette(path):
        raise ZeroDivisionError


def record(tmp_path: Path, answer: Callable[[httpx.Request], httpx.Response], request: httpx.Request) -> Any:
    path = tmp_path / "it.json"

    async def main() -> None:
        with Cassette(path, record=True, secrets=["org-42"]) as cassette:
            async with httpx.AsyncClient(transport=cassette.transport(httpx.MockTransport(answer))) as client:
                await client.send(request)

    asyncio.run(main())
    (entry,) = json.loads(path.read_text(encoding="utf-8"))["entries"]
    return entry


def test_secrets_are_removed_wherever_they_stand(tmp_path: Path) -> None:
    request = httpx.Request(
        "POST",
        "http://user:pass-word-1@127.0.0.1/x?key=AIza-42424242&alt=sse&q=plain%20text",
        headers={"X-Api-Key": "x-key-777777", "Organization": "org-42", "Cookie": "c=cookie-5555"},
        json={
            "api_key": "body-key-888",
            "max_tokens": 5,
            "nested": [{"accessToken": "token-99999", "token": "", "password": {"type": "string"}}],
            "text": "my key is x-key-777777",
        },
    )
    said = b'{"echo": "body-key-888 token-99999 pass-word-1 AIza-42424242 plain"}'
    entry = record(tmp_path, lambda request: httpx.Response(401, content=said, headers={"x-of": "org-42"}), request)
    text = json.dumps(entry)
    for value in ("AIza", "777777", "org-42", "cookie-5", "body-key", "token-9", "pass-word"):
        assert value not in text
    assert entry["request"]["url"] == "http://<secret>@127.0.0.1/x?key=<secret>&alt=sse&q=plain%20text"
    assert entry["request"]["body"]["max_tokens"] == 5
    assert entry["request"]["body"]["nested"] == [
        {"accessToken": "<secret>", "token": "", "password": {"type": "string"}}
    ]
    assert entry["request"]["body"]["text"] == "my key is <secret>"
    assert entry["response"]["body"] == ['{"echo": "<secret> <secret> <secret> <secret> plain"}']
    assert entry["response"]["status"] == 401


def test_bytes_that_are_no_text_are_kept(tmp_path: Path) -> None:
    request = httpx.Request("POST", "http://127.0.0.1/x", content=b"\xff\x00")
    entry = record(tmp_path, lambda request: httpx.Response(200, content=b"\xfe\xff"), request)
    assert entry["request"]["body"] == {"base64": "/wA="}

    async def main() -> bytes:
        with Cassette(tmp_path / "it.json") as cassette:
            async with httpx.AsyncClient(transport=cassette.transport()) as client:
                return (await client.post("http://127.0.0.1/x", content=b"\xff\x00")).content

    assert asyncio.run(main()) == b"\xfe\xff"


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("Authorization", True), ("x-goog-api-key", True), ("apiKey", True), ("key", True), ("client_secret", True),
        ("X-Amz-Security-Token", True), ("refreshToken", True), ("Set-Cookie", True), ("X-Amz-Signature", True),
        ("max_tokens", False), ("x-ratelimit-remaining-tokens", False), ("keyboard", False), ("author", False),
        ("prompt_cache_key", False), ("monkey", False),
    ],
)  # fmt: skip
def test_names_of_secrets(name: str, secret: bool) -> None:
    assert names_a_secret(name) is secret


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nothing", "is no cassette: JSONDecodeError"),
        ("[]", "is no cassette: TypeError"),
        ('{"version": 7, "entries": []}', "version 7, known is 1"),
        ('{"version": 1, "entries": [{"request": {"method": "GET"}}]}', "KeyError: 'url'"),
        ('{"version": 1, "entries": [{"request": {"method": "GET", "url": "x"}, "response": 3}]}', "TypeError"),
    ],
)
def test_a_file_that_is_no_cassette(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "it.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="Record it anew") as caught:
        Cassette(path)
    assert why in str(caught.value)


def test_nothing_to_play(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"there is no cassette .*it\.json; record it: pytest --record-cassettes"
    ):
        Cassette(tmp_path / "it.json")
