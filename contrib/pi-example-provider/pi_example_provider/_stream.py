"""One request over httpx."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Awaitable
from functools import partial
from typing import Any, TypeVar

import httpx

from pi_core import (
    AbortSignal,
    Context,
    ErrorDetails,
    MessageAssembler,
    Model,
    ProviderResponse,
    StreamEvent,
    StreamOptions,
)

from ._answer import Decoder
from ._request import build_headers, build_payload

T = TypeVar("T")
CONNECT_SECONDS = 10.0


class AbortedError(Exception):
    """The run was aborted."""


async def stream_response(
    model: Model, context: Context, options: StreamOptions, transport: httpx.AsyncBaseTransport | None
) -> AsyncIterator[StreamEvent]:
    """Make one request and yield its events."""
    answer = MessageAssembler(model.api, model.provider, model.id)
    signal = options.signal
    response: httpx.Response | None = None
    try:
        if signal is not None and signal.aborted:
            raise AbortedError
        if not options.api_key:
            raise ValueError("There is no API key for Mistral: set MISTRAL_API_KEY")
        seconds = None if options.timeout_ms is None else options.timeout_ms / 1000
        timeout = httpx.Timeout(seconds, connect=CONNECT_SECONDS)
        async with httpx.AsyncClient(transport=transport, timeout=timeout) as client:
            request = await _request(client, model, context, options)
            response = await _unless_aborted(client.send(request, stream=True), signal)
            if options.on_response is not None:
                await _settled(options.on_response(ProviderResponse(response.status_code, response.headers), model))
            if response.status_code != 200:
                body = (await _unless_aborted(response.aread(), signal)).decode(errors="replace").strip()
                yield _refused(answer, response.status_code, body)
                return
            decoder = Decoder(answer, model)
            yield answer.start()
            async for data in _server_sent(response, signal):
                if data == "[DONE]":
                    break
                for event in decoder.add(json.loads(data)):
                    yield event
            for event in decoder.end():
                yield event
    except AbortedError:
        reason = signal.reason if signal is not None else ""
        yield answer.error(reason or "Request was aborted", aborted=True)
    except httpx.TransportError as error:
        text = f"Connection error: {error or type(error).__name__}"
        yield answer.error(text, error_details=ErrorDetails(retryable=True))
    except Exception as error:
        yield answer.error(str(error) or type(error).__name__)
    finally:
        if response is not None:
            await response.aclose()


async def _request(client: httpx.AsyncClient, model: Model, context: Context, options: StreamOptions) -> httpx.Request:
    payload: Any = build_payload(model, context, options)
    if options.on_payload is not None:
        changed = await _settled(options.on_payload(payload, model))
        payload = payload if changed is None else changed
    headers = build_headers(model, options)
    if options.transform_headers is not None:
        headers = dict(await _settled(options.transform_headers(headers)))
    sent = {name: value for name, value in headers.items() if value is not None}
    sent.setdefault("content-type", "application/json")
    sent.setdefault("authorization", f"Bearer {options.api_key}")
    body = _well_formed(json.dumps(payload, ensure_ascii=False, separators=(",", ":"))).encode()
    request = client.build_request("POST", f"{model.base_url.rstrip('/')}/v1/chat/completions", content=body)
    request.headers.update(sent)
    for name, value in headers.items():
        if value is None and name in request.headers:
            del request.headers[name]
    return request


def _well_formed(text: str) -> str:
    """Without the halves of surrogate pairs, which UTF-8 cannot say."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")


def _refused(answer: MessageAssembler, status: int, body: str) -> StreamEvent:
    text = f"Mistral API error ({status}): {body or 'no explanation'}"
    return answer.error(text, error_details=ErrorDetails(status=status, retryable=status == 429 or status >= 500))


async def _server_sent(response: httpx.Response, signal: AbortSignal | None) -> AsyncIterator[str]:
    """The data of each event."""
    lines = response.aiter_lines()
    while True:
        try:
            line = await _unless_aborted(anext(lines), signal)
        except StopAsyncIteration:
            return
        name, _, value = line.partition(":")
        if name == "data":
            yield value.removeprefix(" ")


async def _unless_aborted(wanted: Awaitable[T], signal: AbortSignal | None) -> T:
    if signal is None:
        return await wanted
    task = asyncio.ensure_future(_awaited(wanted))
    remove = signal.on_abort(partial(_cancel, task))
    try:
        return await task
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if signal.aborted and not (current is not None and current.cancelling()):
            raise AbortedError from None
        raise
    finally:
        remove()
        if not task.done():
            task.cancel()


def _cancel(task: asyncio.Future[Any]) -> None:
    task.cancel()


async def _awaited(wanted: Awaitable[T]) -> T:
    return await wanted


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
