"""Failures: their text, their kind, and what the provider said as data."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_core import AssistantMessage, ErrorDetails
from pi_plugins.providers._errors import (
    ResponseError,
    http_error,
    is_retryable,
    page_text,
    redact,
    server_delay_ms,
    short_http_error,
    stream_error,
)


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (400, b'{"error":{"message":"no","code":"x"}}', '400: {"message":"no","code":"x"}'),
        (400, b'[{"error":{"message":"no"}}]', '400: {"message":"no"}'),
        (403, b'{"code":"denied","error":"not you"}', "403: not you"),
        (422, b'{"object":"error","message":"bad"}', '422: {"object":"error","message":"bad"}'),
        (404, b'{"detail":"Not Found"}', '404: {"detail":"Not Found"}'),
        (500, b"", "500 status code (no body)"),
        (429, b"{}", "429 status code (no body)"),
        (502, b"<html>oops</html>", "502 <html>oops</html>"),
        (503, b"upstream connect error", "503 upstream connect error"),
        (500, b"\xff\xfe broken", "500 \ufffd\ufffd broken"),
    ],
)
def test_http_error_text(status: int, body: bytes, text: str) -> None:
    failure = http_error(status, {}, body)
    assert failure.text == text
    assert failure.details.status == status


def test_long_body_is_cut() -> None:
    failure = http_error(400, {}, b"x" * 5000)
    assert failure.text.endswith("x... [truncated 1000 chars]")


def test_a_page_for_people_becomes_its_words() -> None:
    page = "<!DOCTYPE html><html><head><title>502 Bad\n Gateway</title><style>p {}</style></head>"
    page += "<body><h1>Bad gateway</h1><script>x()</script>" + "<p>nginx</p>" * 100 + "</body></html>"
    failure = http_error(502, {}, page.encode())
    assert failure.text.startswith('502 HTML page "502 Bad Gateway": Bad gateway nginx nginx')
    assert len(failure.text) < 400
    assert failure.details.retryable is True
    assert page_text("plain " * 100) is None


def test_what_the_provider_behind_a_router_said() -> None:
    raw = json.dumps({"error": {"message": "really\nwrong"}}, indent=1)
    body = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "upstream says no"}}}
    assert http_error(400, {}, json.dumps(body).encode()).text.count("upstream says no") == 1
    assert stream_error(body).text == "Provider returned error\nupstream says no"
    body["error"]["metadata"] = {"raw": raw}
    assert "really" in http_error(400, {}, json.dumps(body).encode()).text
    assert stream_error(body).text.endswith(raw)


@pytest.mark.parametrize(
    ("event", "text", "kind", "status"),
    [
        ({"error": {"message": "Overloaded", "type": "overloaded_error"}}, "Overloaded", "overloaded_error", None),
        ({"error": "just text"}, "just text", None, None),
        ({"error": {"type": "server_error"}}, '{"type":"server_error"}', "server_error", None),
        ({"error": {"message": "m", "code": 502}}, "m", None, 502),
        ({"error": {"message": "m", "code": "429"}}, "m", None, 429),
        ({"error": {"message": "m", "status": "RESOURCE_EXHAUSTED", "code": 429}}, "m", "RESOURCE_EXHAUSTED", 429),
        ({"object": "error", "message": "m", "type": "invalid"}, "m", "invalid", None),
        ({"unknown": 1}, '{"unknown":1}', None, None),
        (None, "null", None, None),
    ],
)
def test_error_inside_a_stream(event: Any, text: str, kind: str | None, status: int | None) -> None:
    failure = stream_error(event)
    assert failure.text == text
    assert (failure.details.type, failure.details.status) == (kind, status)


def test_request_id() -> None:
    assert http_error(500, {"X-Request-Id": "r1"}, b"{}").details.request_id == "r1"
    assert stream_error({"error": {"message": "m"}, "request_id": "r2"}).details.request_id == "r2"


@pytest.mark.parametrize(
    ("status", "text", "retryable"),
    [
        (400, "overloaded", False),
        (401, "rate limit", False),
        (413, "too large", False),
        (422, "timeout", False),
        (408, "x", True),
        (409, "x", True),
        (429, "slow down", True),
        (429, "You exceeded your current quota, please check your plan and billing details", False),
        (500, "x", True),
        (529, "x", True),
        (500, "This model's maximum context length is 10 tokens", False),
        (None, "overloaded", True),
        (None, "bad request", False),
    ],
)
def test_retryable(status: int | None, text: str, retryable: bool) -> None:
    assert ResponseError(text, ErrorDetails(status=status)).details.retryable is retryable


def test_the_server_decides_about_retries_when_it_says_so() -> None:
    assert http_error(400, {"x-should-retry": "true"}, b"{}").details.retryable is True
    assert http_error(503, {"X-Should-Retry": "false"}, b"{}").details.retryable is False


@pytest.mark.parametrize(
    ("quota", "retryable"),
    [
        ("GenerateRequestsPerMinutePerProjectPerModel", True),
        ("GenerateRequestsPerDayPerProjectPerModel-FreeTier", False),
    ],
)
def test_quota_of_a_minute_is_there_again_soon(quota: str, retryable: bool) -> None:
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"},
    ]
    error = {"code": 429, "message": "You exceeded your current quota", "status": "RESOURCE_EXHAUSTED"}
    for failure in (
        http_error(429, {}, json.dumps({"error": {**error, "details": details}}).encode()),
        stream_error({"error": {**error, "details": details}}),
    ):
        assert (failure.details.retry_after_ms, failure.details.retryable) == (17_000, retryable)
    assert http_error(429, {}, json.dumps({"error": error}).encode()).details.retryable is False


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("{body}", '{"error":{"message":"no {x}"}}'),
        ("{status} {body}", '400 {"error":{"message":"no {x}"}}'),
        ("Broken ({status}): {error}", 'Broken (400): {"message":"no {x}"}'),
    ],
)
def test_form_of_the_text(form: str, text: str) -> None:
    assert http_error(400, {}, b'{ "error": {"message": "no {x}"} }', form=form).text == text
    assert http_error(502, {}, b"busy", form=form).text == "502 busy"
    assert http_error(502, {}, b"", form=form).text == "502 status code (no body)"


def test_retryable_message() -> None:
    def failed(stop: Any, text: str, details: ErrorDetails | None = None) -> AssistantMessage:
        return AssistantMessage(
            content=[], api="a", provider="p", model="m", stop_reason=stop, error_message=text, error_details=details
        )

    assert is_retryable(failed("error", "503 Service Unavailable"))
    assert not is_retryable(failed("aborted", "503 Service Unavailable"))
    assert not is_retryable(failed("error", "503", ErrorDetails(retryable=False)))
    assert is_retryable(failed("error", "odd", ErrorDetails(retryable=True)))


def test_delay_a_server_asks_for() -> None:
    assert server_delay_ms({"Retry-After": "2"}) == 2000
    assert server_delay_ms({"retry-after": "0.5"}) == 500
    assert server_delay_ms({"retry-after-ms": "7", "retry-after": "100"}) == 7
    assert server_delay_ms({"retry-after-ms": "soon", "retry-after": "1"}) == 1000
    assert server_delay_ms({}) is None
    assert server_delay_ms({"retry-after": "soon"}) is None
    later = datetime.now(UTC) + timedelta(seconds=30)
    assert 28_000 < (server_delay_ms({"retry-after": format_datetime(later, usegmt=True)}) or 0) <= 30_000
    past = datetime.now(UTC) - timedelta(seconds=30)
    assert server_delay_ms({"retry-after": format_datetime(past)}) == 0
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17.5s"}
    assert server_delay_ms({}, {"error": {"code": 429, "details": [{"@type": "other"}, info]}}) == 17500
    assert server_delay_ms({}, {"error": {"details": "none"}}) is None


def test_short_text() -> None:
    assert short_http_error(429, b'{"error":{"message":"slow down"}}') == "429 slow down"
    assert short_http_error(503, b"busy") == "503 busy"
    assert short_http_error(503, b"") == "503"


def test_secrets_are_replaced_wherever_they_stand_alone() -> None:
    text = "key sk-abcd1234 in 'sk-abcd1234' but not xsk-abcd1234y; token: t0ken"
    assert redact(text, ["sk-abcd1234\n", "t0ken", "", "in"]) == "key *** in '***' but not xsk-abcd1234y; token: ***"


@given(st.integers(100, 999), st.binary(max_size=200))
def test_any_body_has_a_text(status: int, body: bytes) -> None:
    failure = http_error(status, {}, body)
    assert failure.text.startswith(str(status))
    assert short_http_error(status, body).startswith(str(status))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["error", "message", "type", "code", "status", "metadata", "raw", "details", "request_id"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_event_has_a_text(event: Any) -> None:
    assert isinstance(stream_error(event).text, str)
    assert isinstance(http_error(500, {}, json.dumps(event).encode()).text, str)
