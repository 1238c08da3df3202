"""Recorded traffic, played to a provider in every way it can arrive."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from pi_core import AssistantMessage, Context, ThinkingContent, user_message

from .wire_cases import comparable


@dataclass
class Replay:
    """Plays recordings with the fixtures of the module that asks for it."""

    reply: Any
    played: Any
    calls: Any
    model: Any
    cuts: Any

    def finals(self, recording: dict[str, Any], **model: Any) -> list[AssistantMessage]:
        """Return the final message for each way; the events that lead to it are the same for all of them.

        :param model: fields of the model that differ from the recording's.
        """
        body = recording["response_body"].encode()
        target = self.model(**{"id": recording["model"] or "unknown", "provider": "recorded", **model})
        made = []
        for cut in self.cuts(body, recording.get("wire_chunk_lengths_bytes")).values():
            reply = self.reply(cut, recording["response_status"], recording["response_headers"])
            provider, _ = self.played(reply)
            options = self.calls.options({"maxRetries": 0})
            stream = provider.stream(target, Context(messages=[user_message("x")]), options)
            events = asyncio.run(self.calls.collect(stream))
            assert [event.type for event in events if event.type in ("done", "error")] == [events[-1].type]
            message = events[-1].message
            texts: dict[int, str] = {}
            for event in events:
                if event.type in ("text_start", "thinking_start"):
                    texts[event.content_index] = event.text if event.type == "text_start" else event.thinking
                elif event.type in ("text_delta", "thinking_delta"):
                    texts[event.content_index] += event.delta
                elif event.type in ("text_end", "thinking_end"):
                    texts[event.content_index] = event.content
                elif event.type == "toolcall_start":
                    texts.pop(event.content_index, None)
            for index, text in texts.items():
                block = message.content[index]
                assert text == (block.thinking if isinstance(block, ThinkingContent) else block.text)
            made.append((message, comparable([event.to_json() for event in events[:-1]])))
        seen = [(comparable(message.to_json() | {"timestamp": 0}), events) for message, events in made]
        assert seen[1:] == seen[:-1]
        return [message for message, _ in made]
