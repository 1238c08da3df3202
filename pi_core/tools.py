"""Tools: what the model may call, how its arguments are checked, and what comes back."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_type_hints, overload

from pydantic import BaseModel, TypeAdapter, ValidationError, create_model

from ._arguments import ArgumentsValidator, InvalidArguments, copy_json, format_errors, validator_for
from .errors import ToolArgumentsError
from .messages import AssistantMessage, ImageContent, TextContent, ToolCallContent, Usage, UserContent

if TYPE_CHECKING:
    from .context import AbortSignal, RunContext

ExecutionMode: TypeAlias = Literal["sequential", "parallel"]


class Unset:
    """The type of :data:`UNSET`: a field that has no value, where ``None`` is one."""

    def __repr__(self) -> str:
        return "UNSET"

    def __reduce__(self) -> str:
        return "UNSET"


UNSET: Final = Unset()
"""Says that a field has no value, where ``None`` would be one."""


@dataclass(slots=True)
class ToolResult:
    """What a tool returns.

    :param content: text and images for the model.
    :param details: data for the user interface and the session, kept in the transcript.
    :param structured_content: JSON for programs; only in the end event. ``None`` is a value.
    :param usage: tokens the tool itself spent.
    :param is_error: ``True`` marks a failure.
    :param terminate: ``True`` asks to end the run; it ends if every result of the batch does.
    """

    content: list[UserContent] | None = None
    details: Any = None
    structured_content: Any = UNSET
    usage: Usage | None = None
    is_error: bool | None = None
    terminate: bool | None = None

    @classmethod
    def text(cls, text: str, **fields_: Any) -> ToolResult:
        """Return a result of one text block."""
        return cls(content=[TextContent(text=text)], **fields_)

    @classmethod
    def error(cls, text: str) -> ToolResult:
        """Return the result the framework itself makes of a failure: the text, and empty details."""
        return cls(content=[TextContent(text=text)], details={})

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        data: dict[str, Any] = {}
        if self.content is not None:
            data["content"] = [block.to_json() for block in self.content]
        if self.details is not None:
            data["details"] = to_json_value(self.details)
        if self.structured_content is not UNSET:
            data["structuredContent"] = to_json_value(self.structured_content)
        if self.usage is not None:
            data["usage"] = self.usage.to_json()
        if self.is_error is not None:
            data["isError"] = self.is_error
        if self.terminate is not None:
            data["terminate"] = self.terminate
        return data


@dataclass(slots=True, kw_only=True)
class ToolResultPatch:
    """What ``after_tool_call`` changes of a result; ``None`` keeps a field.

    Replacing ``content`` alone drops the structured content.
    """

    content: list[UserContent] | None = None
    details: Any = None
    structured_content: Any = UNSET
    usage: Usage | None = None
    is_error: bool | None = None
    terminate: bool | None = None

    def apply(self, result: ToolResult, is_error: bool) -> tuple[ToolResult, bool]:
        """Return the patched result and error flag; ``result`` itself stays as it is."""
        structured = self.structured_content
        if structured is UNSET and self.content is None:
            structured = result.structured_content
        patched = ToolResult(
            content=result.content if self.content is None else self.content,
            details=result.details if self.details is None else self.details,
            structured_content=structured,
            usage=result.usage if self.usage is None else self.usage,
            is_error=result.is_error,
            terminate=result.terminate if self.terminate is None else self.terminate,
        )
        return patched, is_error if self.is_error is None else self.is_error


@dataclass(slots=True)
class Block:
    """A guard's answer: the call is not executed, and the model is told why.

    :param terminate: whether the blocked call asks to end the run, as a result may.
    """

    reason: str = ""
    terminate: bool | None = None


@dataclass(slots=True)
class ReplaceArguments:
    """A guard's answer: go on with these arguments, which are validated again."""

    arguments: dict[str, Any]


def ignore_update(result: ToolResult) -> None:
    """Drop a progress report: nobody listens."""


@dataclass(slots=True)
class ToolContext:
    """What a running tool is given beside its arguments."""

    tool_call_id: str
    signal: AbortSignal | None = None
    run: RunContext | None = None
    on_update: Callable[[ToolResult], None] = ignore_update

    def update(self, result: ToolResult | str) -> None:
        """Report progress; ignored once the tool has returned.

        :raises TypeError: it is neither a result nor a text.
        """
        if isinstance(result, str):
            result = ToolResult.text(result)
        elif not isinstance(result, ToolResult):
            raise TypeError(f"a progress report is a ToolResult or a text, got {type(result).__name__}")
        self.on_update(result)


Execute: TypeAlias = Callable[[Any, ToolContext], Any]


@dataclass(slots=True, eq=False)
class Tool:
    """Something the model may call.

    :param parameters: a JSON Schema of an object, or a pydantic model class.
    :param execute: called with the validated arguments (a dict, or an instance of the model) and a
        :class:`ToolContext`; may be ``async``. A plain function runs in a thread. It returns a :class:`ToolResult`, a
        string, a list of content blocks, ``None``, or anything JSON can hold; raising makes an error result.
    :param label: name for people; the tool's name by default.
    :param execution_mode: ``sequential`` makes every batch with this tool run one call at a time.
    :param prepare_arguments: repairs raw arguments before they are validated.
    :param timeout: seconds after which the call is given up with an error result.
    :param constrained_sampling: how strictly the provider should hold the model to the schema.
    :param output_schema: JSON Schema of ``structured_content``.
    :param replay: whether a call may be made again after a crash: ``safe``, ``never``, or ``keyed``, when the tool does
        nothing twice for one key. It is for those who run calls durably.
    :param prompt_snippet: one line that says in a system prompt what the tool is for; without it the tool is not listed
        there, and the model knows it by its description alone.
    :param prompt_guidelines: rules for a system prompt that hold while the model may call the tool.
    """

    name: str
    description: str
    parameters: dict[str, Any] | type[BaseModel]
    execute: Execute
    label: str = ""
    execution_mode: ExecutionMode | None = None
    prepare_arguments: Callable[[Any], Any] | None = None
    timeout: float | None = None
    constrained_sampling: Mapping[str, Any] | Literal[False] | None = None
    output_schema: dict[str, Any] | None = None
    replay: Literal["never", "safe", "keyed"] | None = None
    prompt_snippet: str | None = None
    prompt_guidelines: tuple[str, ...] = ()
    schema: dict[str, Any] = field(init=False, repr=False)
    model: type[BaseModel] | None = field(init=False, repr=False)
    is_async: bool = field(init=False, repr=False)
    _validator: ArgumentsValidator | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(f"a tool needs a name, got {self.name!r}")
        if isinstance(self.parameters, type) and issubclass(self.parameters, BaseModel):
            self.model = self.parameters
            self.schema = self.parameters.model_json_schema()
        elif isinstance(self.parameters, dict):
            self.model = None
            self.schema = self.parameters
        else:
            raise ValueError(
                f"tool '{self.name}': parameters must be a JSON Schema object or a pydantic model, "
                f"got {type(self.parameters).__name__}"
            )
        if isinstance(self.prompt_guidelines, str):
            raise ValueError(f"tool '{self.name}': prompt_guidelines is a sequence of lines, got one text")
        self.label = self.label or self.name
        function = self.execute if inspect.isroutine(self.execute) else type(self.execute).__call__
        self.is_async = inspect.iscoroutinefunction(self.execute) or inspect.iscoroutinefunction(function)

    def declaration(self) -> dict[str, Any]:
        """Return what the model sees, as JSON."""
        data: dict[str, Any] = {"name": self.name, "description": self.description, "parameters": self.schema}
        if self.constrained_sampling is not None:
            data["constrainedSampling"] = self.constrained_sampling
        return data

    def prepare(self, call: ToolCallContent) -> dict[str, Any]:
        """Return the arguments of a call, repaired, coerced and validated; the call's own stay as they are.

        :raises ToolArgumentsError: they do not fit, with the path of every fault.
        """
        raw: Any = call.arguments
        if self.prepare_arguments is not None:
            raw = self.prepare_arguments(copy_json(raw))
        return self.validate(raw, call.arguments_error)

    def validate(self, arguments: Any, arguments_error: str | None = None) -> dict[str, Any]:
        """Return coerced and validated arguments.

        :raises ToolArgumentsError: they do not fit, with the path of every fault.
        """
        if arguments_error:
            raise ToolArgumentsError(f'Invalid arguments for tool "{self.name}": {arguments_error}', ["root"])
        try:
            if self._validator is None:
                self._validator = validator_for(self.schema)
            return self._validator.validate(arguments)
        except InvalidArguments as error:
            text = format_errors(self.name, error.errors, arguments)
            raise ToolArgumentsError(text, [path for path, _ in error.errors]) from None

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Execute the tool with validated arguments; what it raises comes out."""
        given: Any = arguments if self.model is None else self._model_arguments(arguments)
        if self.is_async:
            value = await self.execute(given, context)
        else:
            from ._threads import in_thread

            value = await in_thread(self.execute, given, context)
        # A function may return the call of another one that it did not await.
        if not isinstance(value, ToolResult) and inspect.isawaitable(value):
            value = await value
        return to_result(value)

    def _model_arguments(self, arguments: dict[str, Any]) -> BaseModel:
        assert self.model is not None
        try:
            return self.model.model_validate(arguments)
        except ValidationError as error:
            faults = [
                (".".join(str(part) for part in fault["loc"]) or "root", fault["msg"])
                for fault in error.errors(include_url=False, include_context=False)
            ]
            text = format_errors(self.name, faults, arguments)
            raise ToolArgumentsError(text, [path for path, _ in faults]) from None


class ToolCall:
    """One call on its way, as the tool hooks see it.

    ``arguments`` are the validated ones; every read gives a copy, so editing them in place does nothing.
    """

    __slots__ = ("_arguments", "content", "context", "message", "tool")

    def __init__(
        self,
        content: ToolCallContent,
        arguments: dict[str, Any],
        tool: Tool,
        message: AssistantMessage,
        context: ToolContext,
    ) -> None:
        self.content = content
        self.tool = tool
        self.message = message
        self.context = context
        self._arguments = arguments

    @property
    def id(self) -> str:
        """The call's id, unique within its message."""
        return self.content.id

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.content.name

    @property
    def raw_arguments(self) -> dict[str, Any]:
        """A copy of what the model sent."""
        return cast("dict[str, Any]", copy_json(self.content.arguments))

    @property
    def arguments(self) -> dict[str, Any]:
        """A copy of the validated arguments."""
        return cast("dict[str, Any]", copy_json(self._arguments))

    def with_arguments(self, arguments: dict[str, Any]) -> ToolCall:
        """Return the same call with other validated arguments."""
        return ToolCall(self.content, arguments, self.tool, self.message, self.context)

    async def run(self) -> ToolResult:
        """Execute the tool itself: what the core's ``execute_tool`` does."""
        return await self.tool.run(self._arguments, self.context)


@dataclass(slots=True)
class ToolCallOutcome:
    """What came of one call. ``duration_ms`` is there when the tool ran."""

    tool_call: ToolCallContent
    result: ToolResult
    is_error: bool
    duration_ms: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        data = {"toolCall": self.tool_call.to_json(), "result": self.result.to_json(), "isError": self.is_error}
        if self.duration_ms is not None:
            data["durationMs"] = self.duration_ms
        return data


def to_json_value(value: Any, fallback: Callable[[Any], Any] = str) -> Any:
    """Return ``value`` as JSON data; objects JSON does not know become what pydantic makes of them, or their text.

    :param fallback: makes something else of an object that would become its text.
    :raises ValueError: it holds itself, or is nested too deep.
    """
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    return _anything().dump_python(value, mode="json", fallback=fallback)


@cache
def _anything() -> TypeAdapter[Any]:
    return TypeAdapter(Any)


def to_result(value: Any) -> ToolResult:
    """Make a :class:`ToolResult` of whatever a tool function returned."""
    if isinstance(value, ToolResult):
        return value
    if value is None:
        return ToolResult(content=[])
    if isinstance(value, str):
        return ToolResult.text(value)
    if isinstance(value, TextContent | ImageContent):
        return ToolResult(content=[value])
    if isinstance(value, list) and value and all(isinstance(item, TextContent | ImageContent) for item in value):
        return ToolResult(content=list(value))
    data = to_json_value(value)
    return ToolResult.text(json.dumps(data, ensure_ascii=False), structured_content=data)


ToolFunction: TypeAlias = Callable[..., Any] | Callable[..., Awaitable[Any]]


@overload
def tool(function: ToolFunction, /) -> Tool: ...
@overload
def tool(**options: Any) -> Callable[[ToolFunction], Tool]: ...
def tool(function: ToolFunction | None = None, /, **options: Any) -> Any:
    """Make a :class:`Tool` of a typed function: its parameters become the schema, its docstring the description.

    A parameter annotated with :class:`ToolContext` gets the context and is not part of the schema. ``options`` are
    fields of :class:`Tool` that differ from what the function says (``name``, ``timeout`` ...).

    :raises TypeError: a parameter has no annotation, or is positional only or variadic.
    """
    if function is None:
        unknown = set(options) - {field.name for field in fields(Tool) if field.init}
        if unknown:
            raise TypeError(f"tool: unknown option {sorted(unknown)[0]!r}")
        return lambda wrapped: _from_function(wrapped, options)
    return _from_function(function, options)


def _from_function(function: ToolFunction, options: dict[str, Any]) -> Tool:
    name = options.pop("name", getattr(function, "__name__", ""))
    hints = get_type_hints(function, include_extras=True)
    context_parameter: str | None = None
    members: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"tool '{name}': parameter '{parameter.name}' must have a name the model can use")
        annotation = hints.get(parameter.name, parameter.empty)
        if annotation is parameter.empty:
            raise TypeError(f"tool '{name}': parameter '{parameter.name}' needs a type annotation")
        if annotation is ToolContext:
            context_parameter = parameter.name
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        members[parameter.name] = (annotation, default)
    model = create_model(f"{name}_arguments", **members)

    def keywords(arguments: BaseModel, context: ToolContext) -> dict[str, Any]:
        given = {member: getattr(arguments, member) for member in members}
        return given if context_parameter is None else {**given, context_parameter: context}

    if inspect.iscoroutinefunction(function):

        async def execute(arguments: BaseModel, context: ToolContext) -> Any:
            return await function(**keywords(arguments, context))

        run: Execute = execute
    else:

        def execute_sync(arguments: BaseModel, context: ToolContext) -> Any:
            return function(**keywords(arguments, context))

        run = execute_sync
    description = options.pop("description", inspect.getdoc(function) or "")
    return Tool(name=name, description=description, parameters=model, execute=run, **options)
