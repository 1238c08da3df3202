"""A request of the messages API from its parts, and what to do when the server refuses one of them."""

from __future__ import annotations

import re
from typing import Any, Final

from pi_core import AssistantMessage, Context, MessageAssembler, Model, StreamOptions, now_ms

from ._anthropic_compat import compat_of
from ._anthropic_content import assistant_message
from ._anthropic_decode import AnthropicDecoder
from ._anthropic_request import THREADS_BETA, build_request, session_headers
from ._anthropic_sessions import Sessions
from ._errors import ResponseError
from ._headers import api_address, cache_retention, copilot_headers, default_headers, environment
from ._stream import Prepared

VERSION: Final = "2023-06-01"
_OAUTH_BETA: Final = "oauth-2025-04-20"
_OAUTH_KEY: Final = "sk-ant-oat"

_STRICT_LIMIT: Final = re.compile(r"\bstrict\b|schemas? (?:is|are) too complex|grammar (?:is )?too", re.IGNORECASE)
_ABOUT_THREADS: Final = re.compile(r"\bthreads?\b|message-threads|previous_message", re.IGNORECASE)
_NO_THREADS: Final = re.compile(
    r"unsupported|not (?:supported|permitted|allowed|available|enabled)|unexpected|unknown|unrecognized|invalid beta",
    re.IGNORECASE,
)


class RequestMaker:
    """Makes the requests for one answer: the one that is wanted and, as long as one is refused, plainer ones.

    :param sessions: what is known of earlier requests.
    """

    def __init__(
        self, model: Model, context: Context, options: StreamOptions, assembler: MessageAssembler, sessions: Sessions
    ) -> None:
        self._model = model
        self._context = context
        self._options = options
        self._assembler = assembler
        self._sessions = sessions
        self._compat = compat_of(model)
        threads = self._compat.supports_message_threads and cache_retention(options) != "none"
        self._thread_id = options.session_id if threads else None
        self._lenient = self._sessions.strict_refused(options.session_id)
        self._strict_tools = False
        self._whole: dict[str, Any] | None = None
        self._continues = False
        self._notes: list[dict[str, Any]] = []

    def make(self) -> Prepared:
        """Return the next request to try.

        :raises ResponseError: the model has no address.
        :raises ValueError: a tool asks for what the server cannot do.
        """
        model, options, compat = self._model, self._options, self._compat
        address = api_address(model).removesuffix("/v1")
        built = build_request(model, compat, self._context, options, lenient=self._lenient)
        self._strict_tools = built.strict_tools
        if self._thread_id is not None and not self._sessions.uses_threads(self._thread_id):
            self._thread_id = None
        if self._thread_id is not None:
            built.betas.append(THREADS_BETA)
        if built.effort is not None:
            self._assembler.update(provider_thinking_level=built.effort)
        return Prepared(
            url=f"{address}/v1/messages?beta=true",
            headers=self._headers(built.betas),
            key_headers=("x-api-key", "authorization", "cf-aig-authorization", "api-key"),
            payload=built.payload,
            decoder=AnthropicDecoder(self._assembler, model, compat, self._notes, self._keep),
            error_form="{status} {body}",
            finish=self._finish,
            recover=self._recover,
        )

    def _headers(self, betas: list[str]) -> dict[str, str | None]:
        model, options = self._model, self._options
        headers = {
            **default_headers(),
            "anthropic-version": VERSION,
            "anthropic-dangerous-direct-browser-access": "true",
            **session_headers(self._compat, options),
        }
        key = (options.api_key or "").strip()
        token = None if key or model.provider != "anthropic" else environment("ANTHROPIC_AUTH_TOKEN", options)
        if model.provider == "github-copilot":
            headers.update(copilot_headers(self._context.messages))
            token, key = key, ""
        elif key.startswith(_OAUTH_KEY):
            betas = [*betas, _OAUTH_BETA]
            token, key = key, ""
        if token:
            headers["authorization"] = f"Bearer {token}"
        if key:
            headers["x-api-key"] = key
        if betas:
            headers["anthropic-beta"] = ",".join(betas)
        return headers

    def _finish(self, payload: Any, headers: dict[str, str | None]) -> Any:
        """Tidy the list of features, and leave out of the request what the server holds if it has threads."""
        betas = [name.strip() for name in (headers.get("anthropic-beta") or "").split(",") if name.strip()]
        if "anthropic-beta" in headers:
            headers["anthropic-beta"] = ",".join(betas) or None
        self._whole, self._continues = None, False
        if self._thread_id is None or THREADS_BETA not in betas or not _has_messages(payload):
            return payload
        self._whole = payload
        sent = self._sessions.split(self._thread_id, payload)
        self._continues = sent["thread"]["type"] == "continue"
        return sent

    def _keep(self, message: AssistantMessage) -> None:
        if self._whole is not None and self._thread_id is not None:
            answer = assistant_message(message, self._compat)
            self._sessions.keep(self._thread_id, self._whole, answer, message.response_id or "")

    def _recover(self, failure: ResponseError) -> Prepared | None:
        status = failure.details.status or 0
        if status in (401, 403, 408, 429) or not 400 <= status < 500:
            return None
        if self._whole is not None and self._thread_id is not None and _ABOUT_THREADS.search(failure.text):
            if self._continues and not _NO_THREADS.search(failure.text):
                self._sessions.forget_thread(self._thread_id)
                self._note("anthropic_message_thread_fallback", "stale_thread", failure)
            else:
                self._sessions.refuse_threads(self._thread_id)
                self._note("anthropic_message_thread_fallback", "threads_unsupported", failure)
            return self.make()
        if status == 400 and self._strict_tools and _STRICT_LIMIT.search(failure.text):
            self._sessions.refuse_strict(self._options.session_id)
            self._lenient = True
            self._note("anthropic_strict_tools_fallback", "strict_tool_limits_exceeded", failure)
            return self.make()
        return None

    def _note(self, kind: str, reason: str, failure: ResponseError) -> None:
        self._notes.append(
            {
                "type": kind,
                "timestamp": now_ms(),
                "error": {"message": failure.text},
                "details": {"reason": reason},
            }
        )
        self._assembler.update(diagnostics=list(self._notes))


def _has_messages(payload: Any) -> bool:
    messages = payload.get("messages") if isinstance(payload, dict) else None
    return isinstance(messages, list) and bool(messages) and all(isinstance(message, dict) for message in messages)
