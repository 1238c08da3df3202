import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from pi_otel import OtelOptions, OtelPlugin

from pi_core import ErrorDetails, ImageContent, ToolResult, Usage, tool
from pi_core.testing import Barrier, Call, Reply, Think, Wait, assert_plugin_contract, assert_trace, scripted_agent


class Recorded:
    """Spans in memory."""

    def __init__(self):
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def plugin(self, **options):
        return OtelPlugin(OtelOptions(**options), self.provider)

    @property
    def spans(self):
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time)

    def of(self, name):
        (span,) = [span for span in self.spans if span.name == name]
        return span


@pytest.fixture
def recorded():
    return Recorded()


@tool
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@tool
def fail() -> str:
    """Fail."""
    raise ValueError("no luck")


@tool
def picture() -> ToolResult:
    """Show a picture."""
    return ToolResult(content=[ImageContent(data="aGk=", mime_type="image/png")])


CALLING = Reply(Think("hm"), Call("add", {"a": 1, "b": 2}, id="c1"), usage=Usage(input=7, output=3, cache_read=2))


def run(recorded, *replies, prompt="1 + 2?", **options):
    agent, _, log = scripted_agent(*replies, plugins=[recorded.plugin(**options)], tools=[add, fail, picture])
    agent.run_sync(prompt)
    assert_trace(log.events)
    return agent


def test_contract():
    assert_plugin_contract(OtelPlugin())


def test_a_run_is_a_tree_of_spans(recorded):
    run(recorded, CALLING, Reply("3", usage=Usage(input=10, output=1)), agent_name="adder")
    names = [span.name for span in recorded.spans]
    assert names == ["invoke_agent adder", "chat scripted", "execute_tool add", "chat scripted"]
    top, *inner = recorded.spans
    assert top.parent is None
    assert {span.parent.span_id for span in inner} == {top.context.span_id}
    assert [span.kind for span in recorded.spans] == [
        SpanKind.INTERNAL, SpanKind.CLIENT, SpanKind.INTERNAL, SpanKind.CLIENT
    ]  # fmt: skip
    assert all(top.start_time <= span.start_time <= span.end_time <= top.end_time for span in inner)
    assert dict(top.attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "adder",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "scripted",
        "gen_ai.response.model": "scripted",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 19,
        "gen_ai.usage.output_tokens": 4,
        "gen_ai.usage.cache_read.input_tokens": 2,
    }
    assert dict(inner[0].attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.stream": True,
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "scripted",
        "gen_ai.response.model": "scripted",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 9,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 2,
    }
    assert dict(inner[1].attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Add two numbers.",
    }


def test_content_is_only_recorded_when_it_is_asked_for(recorded):
    run(recorded, CALLING, Reply(Call("picture", id="c2")), "done", content=True)
    first, second, last = [span for span in recorded.spans if span.name.startswith("chat")]
    assert json.loads(first.attributes["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "1 + 2?"}]}
    ]
    call = {"type": "tool_call", "id": "c1", "name": "add", "arguments": {"a": 1, "b": 2}}
    assert json.loads(first.attributes["gen_ai.output.messages"]) == [
        {
            "role": "assistant",
            "parts": [{"type": "reasoning", "content": "hm"}, call],
            "finish_reason": "tool_calls",
        }
    ]
    assert json.loads(second.attributes["gen_ai.input.messages"])[-1] == {
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": "c1", "response": [{"type": "text", "content": "3"}]}],
    }
    assert json.loads(recorded.of("execute_tool add").attributes["gen_ai.tool.call.arguments"]) == {"a": 1, "b": 2}
    assert json.loads(recorded.of("execute_tool picture").attributes["gen_ai.tool.call.result"]) == [{"type": "image"}]
    assert "aGk=" not in str([dict(span.attributes) for span in recorded.spans])
    assert last.attributes["gen_ai.response.finish_reasons"] == ("stop",)


def test_failures_are_failures_of_their_span(recorded):
    details = ErrorDetails(type="overloaded_error", status=529)
    run(recorded, Reply(Call("fail")), Reply(error="too much", error_details=details))
    tool_span = recorded.of("execute_tool fail")
    assert (tool_span.status.status_code, tool_span.status.description) == (StatusCode.ERROR, "no luck")
    assert tool_span.attributes["error.type"] == "ValueError"
    for span in (recorded.spans[0], recorded.spans[-1]):
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "too much")
        assert span.attributes["error.type"] == "overloaded_error"
    assert recorded.spans[1].status.status_code is StatusCode.UNSET


def test_an_aborted_run_ends_its_spans(recorded):
    agent, _, _ = scripted_agent(Reply("one", Wait(Barrier())), plugins=[recorded.plugin()])
    agent.subscribe(lambda event, signal: agent.abort() if event.type == "message_update" else None)
    agent.run_sync("go")
    assert [span.name for span in recorded.spans] == ["invoke_agent", "chat scripted"]
    assert recorded.spans[0].attributes["error.type"] == "aborted"


def test_an_agent_within_a_tool_is_below_its_call(recorded):
    @tool
    async def ask() -> str:
        """Ask another agent."""
        inner, _, _ = scripted_agent("inner", plugins=[recorded.plugin(agent_name="inner")])
        await inner.prompt("go")
        return "asked"

    agent, _, _ = scripted_agent(Reply(Call("ask")), "done", plugins=[recorded.plugin()], tools=[ask])
    agent.run_sync("go")
    inner, call = recorded.of("invoke_agent inner"), recorded.of("execute_tool ask")
    assert inner.parent.span_id == call.context.span_id


def test_content_and_names_of_options_are_checked():
    with pytest.raises(ValueError, match="endpont"):
        OtelOptions(endpont="x")


class Collector:
    """An OTLP collector on loopback."""

    def __init__(self):
        self.spans = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    import gzip

                    body = gzip.decompress(body)
                assert self.path == "/v1/traces"
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    attributes = {each.key: each.value.string_value for each in resource.resource.attributes}
                    for scope in resource.scope_spans:
                        outer.spans += [(attributes["service.name"], span.name) for span in scope.spans]
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def collector():
    made = Collector()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.mark.parametrize("by", ["environment", "options"])
def test_spans_reach_a_collector(collector, tmp_path, by):
    script = tmp_path / "script.json"
    script.write_text('["hello"]', encoding="utf-8")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("OTEL_")},
        "PI_SCRIPT": str(script),
        "HOME": str(tmp_path),
        "NO_PROXY": "127.0.0.1",
    }
    arguments = ["-p", "--model", "scripted/scripted", "go"]
    service = "pi"
    if by == "environment":
        environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url
        environment["OTEL_SERVICE_NAME"] = service = "docs-agent"
    else:
        (tmp_path / "pi-build.toml").write_text(
            f'[build]\nname = "x"\n[[plugins]]\nname = "otel"\noptions = {{ endpoint = "{collector.url}/" }}\n'
            '[[plugins]]\nname = "modes"\n[[plugins]]\nname = "models"\n[[plugins]]\nname = "scripted"\n',
            encoding="utf-8",
        )
        arguments = ["--build", str(tmp_path), *arguments]
    done = subprocess.run(
        [sys.executable, "-m", "pi_core", *arguments], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")
    assert sorted(collector.spans) == [(service, "chat scripted"), (service, "invoke_agent")]
