"""Recorded provider traffic: a file of requests and responses, played back in place of the network."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from ._secrets import Secrets

if TYPE_CHECKING:
    import httpx

_VERSION: Final = 1
_LEFT_OUT: Final = frozenset(
    {"accept-encoding", "connection", "content-length", "host", "keep-alive", "transfer-encoding", "user-agent"}
)


class CassetteError(AssertionError):
    """Traffic and cassette do not match."""


class Cassette:
    """Recorded traffic of httpx clients, played back or recorded anew.

    A recorded request is answered once, by the first entry with its method, address and body. The file has ``<secret>``
    in place of the values of headers, parameters of the address and fields of the body that are named like a key, a
    token, a password or a cookie, and wherever one of these values comes again.

    Use it as a context manager, or call :meth:`close`, which checks or writes it.

    :param path: the JSON file.
    :param record: record what the network answers, instead of playing the file.
    :param secrets: values that must not get into the file.
    :raises FileNotFoundError: there is nothing to play.
    :raises ValueError: the file is no cassette.
    """

    def __init__(self, path: str | os.PathLike[str], *, record: bool = False, secrets: Iterable[str] = ()) -> None:
        self.path = Path(path)
        self.record = record
        self.faults: list[str] = []
        self._secrets = tuple(secrets)
        self._entries: list[dict[str, Any]] = [] if record else _read(self.path)
        self._unused = list(self._entries)

    def transport(self, network: httpx.AsyncBaseTransport | None = None) -> httpx.AsyncBaseTransport:
        """Return a transport for :class:`httpx.AsyncClient`.

        :param network: what requests go to while recording; a transport of httpx by default.
        """
        from ._cassette_transport import CassetteTransport

        return CassetteTransport(self, network)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()

    def close(self) -> None:
        """Write what was recorded, or check that everything was played.

        :raises CassetteError: an entry was not used, or a request was not in the file.
        """
        if self.record:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            document = {"version": _VERSION, "entries": self._entries}
            self.path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            return
        unused = [f"{_line(entry['request'])} was recorded, but not asked for" for entry in self._unused]
        if self.faults or unused:
            raise CassetteError(f"{self.path}:\n  " + "\n  ".join([*self.faults, *unused]))

    def find(self, method: str, url: str, headers: Iterable[tuple[str, str]], body: bytes) -> dict[str, Any]:
        """Return the recorded response of a request, which is used up with that.

        :raises CassetteError: there is none; :meth:`close` will say so too.
        """
        asked = _request(method, url, headers, body, Secrets(self._secrets))
        for entry in self._unused:
            if all(entry["request"].get(key) == asked.get(key) for key in ("method", "url", "body")):
                self._unused.remove(entry)
                response: dict[str, Any] = entry["response"]
                return response
        left = ", ".join(_line(entry["request"]) for entry in self._unused) or "nothing"
        fault = f"{_line(asked)} with body {json.dumps(asked.get('body'))[:500]} is not in it (left: {left})"
        self.faults.append(fault)
        raise CassetteError(f"{self.path}: {fault}; record anew if the request is as it should be")

    def keep(
        self,
        request: tuple[str, str, list[tuple[str, str]], bytes],
        status: int,
        headers: Iterable[tuple[str, str]],
        chunks: list[bytes],
    ) -> None:
        """Append an entry without its secrets.

        :param request: method, address, headers and body.
        :param chunks: the response's body as it arrived.
        """
        secrets = Secrets(self._secrets)
        asked = _request(*request, secrets)
        response = {"status": status, "headers": _headers(headers, secrets), "body": _chunks(chunks, secrets)}
        self._entries.append({"request": asked, "response": response})


def body_of(response: dict[str, Any]) -> list[bytes]:
    """Return the chunks of a recorded response."""
    return [
        base64.b64decode(chunk["base64"]) if isinstance(chunk, dict) else chunk.encode() for chunk in response["body"]
    ]


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no cassette {path}; record it: pytest --record-cassettes, or record=True")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["version"] != _VERSION:
            raise ValueError(f"version {document['version']}, known is {_VERSION}")
        entries: list[dict[str, Any]] = document["entries"]
        for entry in entries:
            _line(entry["request"])
            body_of(entry["response"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is no cassette: {type(error).__name__}: {error}. Record it anew") from error
    return entries


def _request(
    method: str, url: str, headers: Iterable[tuple[str, str]], body: bytes, secrets: Secrets
) -> dict[str, Any]:
    kept = _headers(headers, secrets)
    address = secrets.in_url(url)
    try:
        data = secrets.in_json(json.loads(body)) if body else None
    except ValueError:
        data = _chunks([body], secrets)[0]
    return {"method": method, "url": secrets.removed(address), "headers": kept, "body": secrets.removed(data)}


def _headers(headers: Iterable[tuple[str, str]], secrets: Secrets) -> list[list[str]]:
    return [[name.lower(), secrets.in_header(name, value)] for name, value in headers if name.lower() not in _LEFT_OUT]


def _chunks(chunks: list[bytes], secrets: Secrets) -> list[Any]:
    whole = b"".join(chunks)
    cleaned = secrets.removed_bytes(whole)
    if cleaned != whole:
        chunks = [cleaned]
    texts: list[Any] = []
    for chunk in chunks:
        try:
            texts.append(chunk.decode())
        except UnicodeDecodeError:
            texts.append({"base64": base64.b64encode(chunk).decode()})
    return texts


def _line(request: dict[str, Any]) -> str:
    return f"{request['method']} {request['url']}"
