"""Tools: made of functions, models and schemas; what they are given and what becomes of what they return."""

import asyncio
import copy
import pickle
import threading
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from pi_core import (
    UNSET,
    ImageContent,
    TextContent,
    Tool,
    ToolArgumentsError,
    ToolCallContent,
    ToolContext,
    ToolResult,
    ToolResultPatch,
    tool,
)

CONTEXT = ToolContext("c1")
SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


def call(made: Tool, **arguments: Any) -> ToolResult:
    prepared = made.prepare(ToolCallContent(id="c1", name=made.name, arguments=arguments))
    return asyncio.run(made.run(prepared, CONTEXT))


def text_of(result: ToolResult) -> str:
    (block,) = result.content or []
    assert isinstance(block, TextContent)
    return block.text


class TestFromFunction:
    def test_annotations_become_the_schema_and_the_docstring_the_description(self) -> None:
        @tool
        async def find(
            pattern: Annotated[str, Field(description="what to look for")], kind: Literal["file", "folder"] = "file"
        ) -> str:
            """Find things.

            Slowly.
            """
            return f"{kind} {pattern}"

        assert (find.name, find.label, find.description) == ("find", "find", "Find things.\n\nSlowly.")
        assert find.schema["required"] == ["pattern"]
        assert find.schema["properties"]["pattern"]["description"] == "what to look for"
        assert find.schema["properties"]["kind"]["enum"] == ["file", "folder"]
        assert text_of(call(find, pattern="a")) == "file a"

    def test_values_are_coerced_and_models_are_models(self) -> None:
        class Point(BaseModel):
            x: int

        @tool
        def show(point: Point, times: int) -> str:
            return f"{type(point).__name__} {point.x * times}"

        assert text_of(call(show, point={"x": "2"}, times="3")) == "Point 6"

    def test_the_context_is_no_parameter_of_the_model(self) -> None:
        @tool
        def where(context: ToolContext) -> str:
            return context.tool_call_id

        assert where.schema.get("properties", {}) == {}
        assert text_of(call(where)) == "c1"

    def test_options_differ_from_what_the_function_says(self) -> None:
        @tool(name="other", timeout=3, execution_mode="sequential", description="Said elsewhere.")
        def function() -> None:
            """Said here."""

        assert (function.name, function.timeout, function.execution_mode) == ("other", 3, "sequential")
        assert function.description == "Said elsewhere."

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            ("def f(x): ...", "parameter 'x' needs a type annotation"),
            ("def f(*x: int): ...", "parameter 'x' must have a name the model can use"),
            ("def f(x: int, /): ...", "parameter 'x' must have a name the model can use"),
        ],
    )
    def test_a_function_that_cannot_be_a_tool(self, source: str, message: str) -> None:
        namespace: dict[str, Any] = {}
        exec(source, namespace)
        with pytest.raises(TypeError, match=message):
            tool(namespace["f"])

    def test_an_unknown_option(self) -> None:
        with pytest.raises(TypeError, match="unknown option 'timeot'"):
            tool(timeot=3)


class TestArguments:
    def test_what_does_not_fit_is_named_with_its_path(self) -> None:
        class Edit(BaseModel):
            old: str
            count: int = Field(ge=1)

        made = Tool("edit", "Edit.", Edit, lambda arguments, context: None)
        with pytest.raises(ToolArgumentsError, match='Validation failed for tool "edit"') as raised:
            made.prepare(ToolCallContent(id="c", name="edit", arguments={"count": 0}))
        assert set(raised.value.paths) == {"old", "count"}

    def test_what_only_the_model_refuses_is_named_too(self) -> None:
        from pydantic import field_validator

        class Even(BaseModel):
            x: int

            @field_validator("x")
            @classmethod
            def even(cls, value: int) -> int:
                if value % 2:
                    raise ValueError("must be even")
                return value

        made = Tool("even", "Even.", Even, lambda arguments, context: str(arguments.x))
        assert text_of(call(made, x=2)) == "2"
        with pytest.raises(ToolArgumentsError, match="x: Value error, must be even"):
            call(made, x=3)

    def test_arguments_that_were_no_object_are_quoted(self) -> None:
        made = Tool("t", "T.", SCHEMA, lambda arguments, context: None)
        content = ToolCallContent(id="c", name="t", arguments_error="no JSON\n\nReceived arguments:\n{x")
        with pytest.raises(ToolArgumentsError, match='Invalid arguments for tool "t": no JSON'):
            made.prepare(content)

    def test_repaired_arguments_are_validated_and_the_call_stays(self) -> None:
        def rename(arguments: dict[str, Any]) -> dict[str, Any]:
            arguments["x"] = arguments.pop("y")
            return arguments

        made = Tool("t", "T.", SCHEMA, lambda arguments, context: None, prepare_arguments=rename)
        content = ToolCallContent(id="c", name="t", arguments={"y": "4"})
        assert made.prepare(content) == {"x": 4}
        assert content.arguments == {"y": "4"}

    @pytest.mark.parametrize("parameters", [None, [], "object", int])
    def test_parameters_that_are_no_schema(self, parameters: Any) -> None:
        with pytest.raises(ValueError, match="parameters must be a JSON Schema object or a pydantic model"):
            Tool("t", "T.", parameters, lambda arguments, context: None)

    def test_a_tool_needs_a_name(self) -> None:
        with pytest.raises(ValueError, match="a tool needs a name"):
            Tool(" ", "T.", SCHEMA, lambda arguments, context: None)


class TestWordsForTheSystemPrompt:
    def test_a_tool_has_none_unless_they_are_given(self) -> None:
        made = Tool("t", "T.", SCHEMA, lambda arguments, context: None)
        assert (made.prompt_snippet, made.prompt_guidelines) == (None, ())

    def test_a_function_can_be_given_them(self) -> None:
        @tool(prompt_snippet="look up a word", prompt_guidelines=("Look words up before you use them.",))
        def dictionary(word: str) -> str:
            """Look up a word."""
            return word

        assert dictionary.prompt_snippet == "look up a word"
        assert dictionary.prompt_guidelines == ("Look words up before you use them.",)

    def test_they_are_no_part_of_what_is_declared(self) -> None:
        made = Tool("t", "T.", SCHEMA, lambda arguments, context: None, prompt_snippet="tee")
        assert made.declaration() == {"name": "t", "description": "T.", "parameters": SCHEMA}

    def test_guidelines_that_are_one_text_are_refused(self) -> None:
        guidelines: Any = "Be careful."
        with pytest.raises(ValueError, match="tool 't': prompt_guidelines is a sequence of lines, got one text"):
            Tool("t", "T.", SCHEMA, lambda arguments, context: None, prompt_guidelines=guidelines)


class TestResults:
    @pytest.mark.parametrize(
        ("value", "content", "structured"),
        [
            ("text", [TextContent(text="text")], UNSET),
            (None, [], UNSET),
            (TextContent(text="block"), [TextContent(text="block")], UNSET),
            ([ImageContent(data="", mime_type="image/png")], [ImageContent(data="", mime_type="image/png")], UNSET),
            ({"a": 1}, [TextContent(text='{"a": 1}')], {"a": 1}),
            ([1, 2], [TextContent(text="[1, 2]")], [1, 2]),
            (False, [TextContent(text="false")], False),
        ],
    )
    def test_what_a_function_returns_becomes_a_result(self, value: Any, content: Any, structured: Any) -> None:
        made = Tool("t", "T.", {"type": "object"}, lambda arguments, context: value)
        result = call(made)
        assert result.content == content
        assert result.structured_content == structured

    def test_a_patch_replaces_fields_and_drops_structured_content_with_the_content(self) -> None:
        result = ToolResult.text("a", structured_content=1, details={"d": 1}, is_error=True)
        patched, is_error = ToolResultPatch(content=[TextContent(text="b")], is_error=False).apply(result, True)
        assert (text_of(patched), patched.structured_content, patched.details) == ("b", UNSET, {"d": 1})
        assert (patched.is_error, is_error) == (True, False)
        kept, _ = ToolResultPatch(details={"e": 2}).apply(result, True)
        assert (kept.structured_content, kept.details) == (1, {"e": 2})
        given, _ = ToolResultPatch(content=[], structured_content=None).apply(result, True)
        assert given.structured_content is None

    def test_json_leaves_out_what_has_no_value_and_keeps_null_where_it_is_one(self) -> None:
        assert ToolResult().to_json() == {}
        assert ToolResult(content=[], structured_content=None, terminate=False).to_json() == {
            "content": [],
            "structuredContent": None,
            "terminate": False,
        }

    @pytest.mark.parametrize("copy", [copy.copy, copy.deepcopy, lambda result: pickle.loads(pickle.dumps(result))])
    def test_a_field_without_a_value_has_none_in_a_copy(self, copy: Any) -> None:
        result = ToolResult.text("a")
        assert copy(result) == result
        assert copy(result).to_json() == result.to_json() == {"content": [{"type": "text", "text": "a"}]}


def test_a_plain_function_runs_in_a_thread_with_the_context_variables() -> None:
    import contextvars

    variable = contextvars.ContextVar("variable", default="unset")

    @tool
    def thread() -> str:
        return f"{threading.current_thread() is threading.main_thread()} {variable.get()}"

    variable.set("set")
    assert text_of(call(thread)) == "False set"


def test_an_async_callable_object_is_awaited_in_the_loop() -> None:
    class Execute:
        async def __call__(self, arguments: dict[str, Any], context: ToolContext) -> str:
            return threading.current_thread().name

    made = Tool("t", "T.", {"type": "object"}, Execute())
    assert text_of(call(made)) == threading.main_thread().name


def test_a_call_that_a_function_returns_and_did_not_await_is_awaited() -> None:
    async def inner(x: int) -> str:
        return f"{x} it is"

    @tool
    async def outer(x: int) -> Any:
        """Leave the work to another function."""
        return inner(x)

    @tool
    def threaded(x: int) -> Any:
        """The same, in a thread."""
        return inner(x)

    assert text_of(call(outer, x=3)) == text_of(call(threaded, x=3)) == "3 it is"


def test_progress_is_a_text_or_a_result() -> None:
    seen: list[ToolResult] = []
    context = ToolContext("c", on_update=seen.append)
    context.update("half")
    context.update(ToolResult.text("done"))
    assert [text_of(result) for result in seen] == ["half", "done"]


def test_the_declaration_is_what_the_model_sees() -> None:
    made = Tool("t", "T.", SCHEMA, lambda arguments, context: None, constrained_sampling=False)
    assert made.declaration() == {
        "name": "t",
        "description": "T.",
        "parameters": SCHEMA,
        "constrainedSampling": False,
    }
