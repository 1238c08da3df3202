"""Failures of a response: their text, what kind they are, and what the provider said about them as data."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

from pi_core import AssistantMessage, ErrorDetails

from ._text import clean

ABORTED: Final = "Request was aborted"
ERROR_FORM: Final = "{status}: {error}"
_BODY_LIMIT: Final = 4000
_EXCERPT_LIMIT: Final = 300
_RETRIED_STATUS: Final = frozenset({408, 409, 425, 429})


class AbortedError(Exception):
    """The request was aborted by its signal."""


class ResponseError(Exception):
    """A response failed.

    :param text: the error text of the message.
    :param details: what is known as data; without ``retryable`` it is decided from the status and the text.
    """

    def __init__(self, text: str, details: ErrorDetails | None = None) -> None:
        text = clean(text)
        super().__init__(text)
        self.text = text
        details = details or ErrorDetails()
        if details.retryable is None:
            details = details.model_copy(update={"retryable": may_succeed_later(details.status, text)})
        self.details = details


# --- kinds of failures --------------------------------------------------------------------------------------------

_OVERFLOW: Final = re.compile(
    r"""
      (?:prompt|input) (?:\ is)?\ too\ long
    | request [_\ ]too[_\ ]large
    | request\ exceeds\ the\ maximum\ size
    | exceed(?:s|ed)? \b .{0,60} \b context [_\ ] (?:length|window|size)
    | context [_\ ]? (?:length|window|size) [_\ ]? exceed
    | maximum\ context\ length\ (?:is|of)
    | maximum\ prompt\ length\ is
    | with\ [\d,.]+\ maximum\ context\ length
    | input\ token\ count .* exceeds\ the\ maximum
    | input\ length .* exceeds
    | reduce\ the\ length\ of\ the\ (?:messages|prompt|input)
    | (?:longer|greater)\ than\ (?:the|this)\ (?:model's\ )? context\ length
    | tokens? \b .* exceeds\ the\ limit\ of\ \d
    | exceeded\ model\ token\ limit
    | configured\ context\ size\ is
    | range\ of\ input\ length\ should\ be
    | too [_\ ]many[_\ ](?:prompt[_\ ])?tokens
    | token\ limit\ exceeded
    | length\ of\ all\ messages\ is\ too\ long
    | \A \W* 413 \b
    | \A [\w .-]{1,40} \(413\)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_NO_OVERFLOW: Final = re.compile(
    r"\A(?:throttling error|service unavailable):|rate[ _-]?limit|too many requests", re.IGNORECASE
)
_NO_BODY: Final = re.compile(r"\A(?:400|413)\b.*\(no body\)")

_PERMANENT: Final = re.compile(
    r"""
      quota | billing | budget | usage \W? limit | insufficient\ (?:credits|balance|funds) | credit\ balance
    | "code" \s* : \s* "?1308\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_TRANSIENT: Final = re.compile(
    r"""
      overloaded | at\ capacity | high\ demand | (?:server|service|engine)\ (?:is\ )?(?:currently\ )?busy
    | rate[ _-]?limit | too\ many\ requests | throttl
    | (?<![\w.,$]) (?:408|429|500|502|503|504|520|522|524|529) (?![\w,]|\.\d)
    | (?:service|temporarily) \W* unavailable
    | (?:internal|server)[ _]error | internal\ server | bad\ gateway | gateway\ time-?out
    | provider\ returned\ error | upstream\ (?:error|failure|connect|request) | upstream .* failed
    | network[ _]error | connection\ (?:error|refused|reset|aborted|closed|lost|broken|failed|timed)
    | server\ disconnected | peer\ closed
    | econn(?:reset|refused|aborted) | epipe | etimedout | fetch\ failed | socket\ hang\ up | terminated
    | tim(?:ed|e)[ ]?out | stream\ ended | ended\ (?:without|before) | stream .* (?:interrupted|closed)
    | websocket\ (?:closed|limit|connection)
    | retry\ delay | (?:please|try)\ (?:retry|again)\b | resource[ _]?exhausted
    """,
    re.IGNORECASE | re.VERBOSE,
)


def is_overflow_text(text: str, provider: str = "") -> bool:
    """Return whether an error text says that the request was too long for the model."""
    if _NO_OVERFLOW.search(text):
        return False
    return bool(_OVERFLOW.search(text)) or (provider == "cerebras" and bool(_NO_BODY.search(text)))


def is_overflow(message: AssistantMessage, context_window: int = 0) -> bool:
    """Return whether a response failed or was cut because the request filled the context window.

    Some servers do not say so: the answer ends normally with more input than the window has, or ends at once with none
    of the answer's tokens left.

    :param context_window: tokens; 0 means unknown.
    """
    if message.stop_reason == "error":
        return is_overflow_text(message.error_message or "", message.provider)
    if context_window <= 0:
        return False
    prompt = message.usage.input + message.usage.cache_read
    if message.stop_reason == "stop":
        return prompt > context_window
    return message.stop_reason == "length" and message.usage.output == 0 and prompt >= 0.99 * context_window


def is_recoverable_length(message: AssistantMessage, wanted_tokens: int) -> bool:
    """Return whether a response was cut before it had the tokens it was meant to have, so more room would help."""
    return message.stop_reason == "length" and message.usage.output < wanted_tokens


def is_retryable_text(text: str) -> bool:
    """Return whether an error text speaks of something that may be over soon."""
    return bool(_TRANSIENT.search(text)) and not _PERMANENT.search(text) and not is_overflow_text(text)


def is_retryable(message: AssistantMessage) -> bool:
    """Return whether the request of a failed response may succeed later. An aborted one was not meant to."""
    if message.stop_reason != "error":
        return False
    known = message.error_details.retryable if message.error_details else None
    return known if known is not None else is_retryable_text(message.error_message or "")


def may_succeed_later(status: int | None, text: str) -> bool:
    """Return whether the same request may succeed later, from the HTTP status or, without one, from the text."""
    if status is None:
        return is_retryable_text(text)
    transient = status in _RETRIED_STATUS or status >= 500
    return transient and not _PERMANENT.search(text) and not is_overflow_text(text)


# --- texts --------------------------------------------------------------------------------------------------------


def cut(text: str, limit: int = _BODY_LIMIT) -> str:
    """Return the text, shortened to ``limit`` characters with a note of how many are missing."""
    text = text.strip()
    return text if len(text) <= limit else f"{text[:limit]}... [truncated {len(text) - limit} chars]"


def excerpt(data: bytes | str) -> str:
    """Return the beginning of something unexpected, in one line of at most 300 characters."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    return cut(" ".join(text[: 4 * _EXCERPT_LIMIT].split()), _EXCERPT_LIMIT)


def compact(value: Any) -> str:
    """Return JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return the text without the secrets: each is replaced by ``***``."""
    for secret in sorted({secret.strip() for secret in secrets}, key=len, reverse=True):
        if len(secret) > 3:
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(secret)}(?![A-Za-z0-9])", "***", text)
    return text


def exception_text(error: BaseException) -> str:
    """Return the words of an exception, or the name of its class when it has none."""
    text = str(error).strip()
    return text or type(error).__name__


def connection_error(error: BaseException, host: str) -> ResponseError:
    """Return the failure of a connection to a host: the text names the innermost cause."""
    cause = error
    for _ in range(5):
        inner = cause.__cause__ or cause.__context__
        if inner is None or not str(inner).strip():
            break
        cause = inner
    text = ": ".join(dict.fromkeys((f"Connection error: {host}", exception_text(error), exception_text(cause))))
    if "CERTIFICATE_VERIFY_FAILED" in text:
        hint = "The server's certificate is not trusted; SSL_CERT_FILE can name a file of certificates that are."
        return ResponseError(f"{text}. {hint}", ErrorDetails(retryable=False))
    return ResponseError(text, ErrorDetails(retryable=True))


def page_text(body: str) -> str | None:
    """Return what an HTML page says, in short; ``None`` when the text is none or is short enough as it is."""
    start = body[:1000].lstrip().lower()
    if not start.startswith(("<!doctype html", "<html")) or len(body) <= _EXCERPT_LIMIT:
        return None
    title = re.search(r"<title[^>]*>(.*?)</title>", body, re.IGNORECASE | re.DOTALL)
    text = re.sub(r"<(script|style|head)\b.*?</\1>|<[^>]*>", " ", body, flags=re.IGNORECASE | re.DOTALL)
    name = f' "{excerpt(title[1])}"' if title else ""
    return f"HTML page{name}: {excerpt(text)}"


# --- what a provider says -----------------------------------------------------------------------------------------


def http_error(status: int, headers: Mapping[str, str], body: bytes, *, form: str = ERROR_FORM) -> ResponseError:
    """Return the failure that an HTTP status and its body mean.

    :param form: how the text of a JSON body is put together from ``{status}``, ``{error}``, which is the error in the
        body, and ``{body}``, which is all of it.
    """
    text, data = _decode(body)
    error = _error_of(data)
    if data:
        whole = cut(compact(data))
        if isinstance(error, dict) and error:
            inner = f"{cut(compact(error))}{_upstream(error, compact(error))}"
        else:
            inner = cut(error) if isinstance(error, str) and error.strip() else whole
        shown = form.format(status=status, error=inner, body=whole)
    elif text and data is None:
        shown = f"{status} {page_text(text) or cut(text)}"
    else:
        shown = f"{status} status code (no body)"
    details = _details(error, data)
    header = _lower(headers)
    asked = header.get("x-should-retry")
    retryable = {"true": True, "false": False}.get(asked or "", _promised(error))
    return ResponseError(
        shown,
        details.model_copy(
            update={
                "status": status,
                "request_id": request_id_of(headers) or details.request_id,
                "retry_after_ms": server_delay_ms(headers, data),
                "retryable": retryable,
            }
        ),
    )


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """Return the provider's id of the request, which its support asks for."""
    header = _lower(headers)
    return header.get("x-request-id") or header.get("request-id") or None


def short_http_error(status: int, body: bytes) -> str:
    """Return the status with the provider's own words alone."""
    text, data = _decode(body)
    error = _error_of(data)
    words = error.get("message") if isinstance(error, dict) else error
    if not isinstance(words, str) or not words.strip():
        words = compact(error) if error else page_text(text) or text
    return f"{status} {cut(words, _EXCERPT_LIMIT)}".strip()


def stream_error(data: Any) -> ResponseError:
    """Return the failure that an event inside a stream means: ``data`` is the event, or its bare error."""
    error = _error_of(data)
    if isinstance(error, dict):
        message = error.get("message")
        text = message if isinstance(message, str) and message.strip() else compact(error)
        text = cut(text) + _upstream(error, text)
    elif isinstance(error, str) and error.strip():
        text = cut(error)
    else:
        text = cut(compact(data))
    details = _details(error, data)
    delay = server_delay_ms({}, data)
    if delay is not None:
        details = details.model_copy(update={"retry_after_ms": delay, "retryable": _promised(error)})
    return ResponseError(text, details)


def server_delay_ms(headers: Mapping[str, str], data: Any = None) -> int | None:
    """Return the delay a server asks for, in milliseconds: a header in seconds, milliseconds or as a date, or Google's
    ``RetryInfo`` in the body."""
    header = _lower(headers)
    milliseconds = _number(header.get("retry-after-ms"))
    if milliseconds is not None:
        return round(milliseconds)
    after = header.get("retry-after")
    seconds = _number(after)
    if seconds is None and after:
        seconds = _seconds_until(after)
    if seconds is None:
        seconds = _retry_info(_error_of(data))
    return None if seconds is None else round(max(seconds, 0) * 1000)


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _seconds_until(date: str) -> float | None:
    from datetime import UTC, datetime

    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - datetime.now(UTC).timestamp()


def _retry_info(error: Any) -> float | None:
    details = error.get("details") if isinstance(error, dict) else None
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and str(detail.get("@type", "")).endswith("RetryInfo"):
            return _number(str(detail.get("retryDelay", "")).removesuffix("s"))
    return None


def _promised(error: Any) -> bool | None:
    """Whether Google says that the request succeeds after a delay, which it does for the quota of a minute too.

    A quota of a day comes with a delay all the same. ``None`` when it says nothing.
    """
    if _retry_info(error) is None:
        return None
    return not re.search(r"per[ _-]?day", compact(error.get("details")), re.IGNORECASE)


def _decode(body: bytes) -> tuple[str, Any]:
    text = body.decode("utf-8", "replace").strip()
    try:
        data = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text, None
    return text, data if isinstance(data, dict | list) else None


def _error_of(data: Any) -> Any:
    """The part of a body that describes the error."""
    if isinstance(data, list) and data:
        data = data[0]
    if not isinstance(data, dict):
        return data
    return data.get("error") or data


def _details(error: Any, data: Any) -> ErrorDetails:
    outer = data[0] if isinstance(data, list) and data else data
    outer = outer if isinstance(outer, dict) else {}
    inner = error if isinstance(error, dict) else outer
    status = next((code for name in ("code", "status", "status_code") if (code := _status(inner.get(name)))), None)
    kinds = (inner.get(name) for name in ("type", "status", "code"))
    kind = next((clean(kind) for kind in kinds if isinstance(kind, str) and kind and not kind.isdigit()), None)
    request_id = outer.get("request_id") or inner.get("request_id")
    return ErrorDetails(status=status, type=kind, request_id=clean(str(request_id)) if request_id else None)


def _status(value: Any) -> int | None:
    if isinstance(value, str) and re.fullmatch("[45][0-9]{2}", value):
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600 else None


def _upstream(error: dict[str, Any], shown: str) -> str:
    """What the provider behind a router said, on a line of its own, unless it is shown already."""
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if not isinstance(raw, str) or not raw.strip() or raw in shown or compact(raw)[1:-1] in shown:
        return ""
    return f"\n{cut(raw)}"
