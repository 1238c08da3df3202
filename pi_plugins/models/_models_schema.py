"""What ``models.json`` may hold, and what is said about an entry that does not fit."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails, PydanticCustomError

from pi_core import ThinkingLevel
from pi_plugins.config.json_text import JsonPath
from pi_plugins.config.secrets import without_secrets


def _printable(text: str) -> str:
    if not text.isprintable():
        raise PydanticCustomError("not_printable", "a text without control characters")
    return text


Text = Annotated[str, StringConstraints(min_length=1)]
Name = Annotated[str, StringConstraints(min_length=1), AfterValidator(_printable)]
# No user and password: an address is shown in logs and lists.
Address = Annotated[str, StringConstraints(pattern=r"^https?://[^\s\x00-\x1f\x7f@/?#]+(/[^\s\x00-\x1f\x7f?#]*)?$")]
Count = Annotated[int, Field(gt=0, le=10**9)]
Price = Annotated[float, Field(ge=0)]
Headers = dict[Text, str | None]


class Fields(BaseModel):
    """Base of everything in the file. Only what is there counts, so the defaults mean nothing."""

    model_config = ConfigDict(
        strict=True, extra="ignore", alias_generator=to_camel, allow_inf_nan=False, defer_build=True
    )

    def given(self) -> dict[str, Any]:
        """Return what the file says, as it says it."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class CostTier(Fields):
    """Prices of requests whose prompt is longer than a number of tokens."""

    input_tokens_above: Annotated[int, Field(ge=0)]
    input: Price
    output: Price
    cache_read: Price = 0
    cache_write: Price = 0


class CostPatch(Fields):
    """Prices that replace single ones, in US dollars per million tokens."""

    input: Price = 0
    output: Price = 0
    cache_read: Price = 0
    cache_write: Price = 0
    tiers: list[CostTier] = Field(default=[])


class Cost(Fields):
    """The prices of a model, in US dollars per million tokens."""

    input: Price
    output: Price
    cache_read: Price
    cache_write: Price
    tiers: list[CostTier] = Field(default=[])


class ImageSize(Fields):
    """How large an image may be: in pixels, and in bytes of base64."""

    max_width: Count = 1
    max_height: Count = 1
    max_bytes: Count = 1
    jpeg_quality: Annotated[int, Field(ge=1, le=100)] = 1


class ImageLimits(Fields):
    """How many images may be sent, and how large."""

    resize: ImageSize = ImageSize.model_construct()
    max_per_message: Count = 1
    max_per_request: Count = 1


class InputLimits(Fields):
    """What of a request a server refuses."""

    max_request_bytes: Count = 1
    images: ImageLimits = ImageLimits.model_construct()


class PromptCache(Fields):
    """How long a server keeps a prompt, in seconds."""

    short: Price = 0
    long: Price = 0


class ModelFields(Fields):
    """What an entry and an override have in common."""

    name: Name = ""
    reasoning: bool = False
    thinking_level_map: dict[ThinkingLevel, str | None] = Field(default={})
    input: Annotated[list[Literal["text", "image"]], Field(min_length=1)] = Field(default=["text"])
    input_limits: InputLimits = InputLimits.model_construct()
    prompt_cache: PromptCache = PromptCache.model_construct()
    context_window: Count = 1
    max_tokens: Count = 1
    sampling_params: dict[str, Any] = Field(default={})
    sampling_params_by_thinking_level: dict[ThinkingLevel, dict[str, Any]] = Field(default={})
    headers: Headers = Field(default={})
    compat: dict[str, Any] = Field(default={})


class ModelOverride(ModelFields):
    """Changes of a model that is there."""

    cost: CostPatch = CostPatch.model_construct()


class ModelEntry(ModelFields):
    """A model.

    :param extends: a model whose fields it takes over: an id, ``provider/id``, or true for the model it replaces.
    """

    id: Name
    api: Text = ""
    base_url: Address = ""
    cost: Cost = Cost.model_construct()
    extends: bool | Text = False


class ProviderFields(Fields):
    """A provider. Models and overrides are checked one by one, so that a wrong one costs only itself."""

    name: Name = ""
    base_url: Address = ""
    api_key: Text = ""
    api: Text = ""
    headers: Headers = Field(default={})
    compat: dict[str, Any] = Field(default={})
    auth_header: bool = False
    oauth: Any = None
    models: list[Any] = Field(default=[])
    model_overrides: dict[str, Any] = Field(default={})


_PROVIDER_NAME: Final[TypeAdapter[str]] = TypeAdapter(Name)

F = TypeVar("F", bound=Fields)

_EXPECTED: Final[Mapping[str, str]] = {
    "string_type": "a text",
    "string_unicode": "a text",
    "string_too_short": "a text that is not empty",
    "string_pattern_mismatch": "an address such as https://host/v1, without user and query",
    "not_printable": "a text without control characters",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "too_short": "a list that is not empty",
}
_BOUNDS: Final = {"gt": "above", "ge": "of at least", "le": "of at most"}
_SECRET: Final = frozenset({"apiKey", "headers"})


def check(kind: type[F], value: Any) -> tuple[F | None, list[tuple[JsonPath, str]]]:
    """Check a value and return what it holds, ``None`` if it does not fit, with what to say about it.

    :returns: the faults are paths below the value and texts; a key that is only unknown is one of them.
    """
    try:
        found = kind.model_validate(value)
    except ValidationError as error:
        return None, _faults(error)
    return found, unknown_keys([field.alias or name for name, field in kind.model_fields.items()], value)


def provider_fault(name: str) -> str | None:
    """Return what is wrong with the name of a provider, ``None`` if nothing is."""
    try:
        _PROVIDER_NAME.validate_python(name)
    except ValidationError as error:
        return sentence(error.errors(include_url=False)[0], ())
    return None


def kind_of(value: object) -> str:
    """Return what a JSON value is, in words."""
    if isinstance(value, bool):
        return "true or false"
    names = {str: "a text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), "null")


def closest(name: str, names: list[str]) -> str:
    """Return ``, did you mean 'x'?`` for the nearest of some names, or nothing when none is near."""
    folded = {known.lower(): known for known in reversed(names)}
    found = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.75)
    return f", did you mean '{folded[found[0]]}'?" if found else ""


def _faults(error: ValidationError) -> list[tuple[JsonPath, str]]:
    faults: dict[JsonPath, str] = {}
    for one in error.errors(include_url=False):
        # What is no part of the file: which member of a union was tried, and that a key is meant.
        path: JsonPath = tuple(part for part in one["loc"] if part != "[key]")
        path = path[:1] if path[:1] == ("extends",) else path
        faults.setdefault(path, sentence(one, path))
    return list(faults.items())


def sentence(fault: ErrorDetails, path: JsonPath) -> str:
    """Return what is expected, and what is there.

    :param path: where the value is, below the entry that is checked.
    """
    context = fault.get("ctx", {})
    if fault["type"] == "missing":
        return "is missing"
    if path == ("extends",):
        expected = "true, or the id of a model"
    elif context.keys() & _BOUNDS:
        words, bound = next((words, context[name]) for name, words in _BOUNDS.items() if name in context)
        expected = f"a number {words} {bound:.15g}"
    elif fault["type"] == "literal_error":
        expected = str(context["expected"])
    else:
        expected = _EXPECTED.get(fault["type"], fault["msg"])
    return f"expected {expected}, got {_shown(fault['input'], path)}"


def _shown(value: object, path: JsonPath) -> str:
    if _SECRET & set(path) or isinstance(value, dict | list):
        return kind_of(value)
    plain = not isinstance(value, str) or value.isprintable()
    text = without_secrets(json.dumps(value, ensure_ascii=not plain, default=str))
    return text if len(text) <= 60 else f"{text[:60]}…"


def unknown_keys(known: list[str], value: Mapping[str, Any]) -> list[tuple[JsonPath, str]]:
    """Return what to say of the keys that are nearly known ones."""
    hints = ((key, closest(key, known)) for key in value if key not in known)
    return [((key,), f"unknown key, which is ignored{hint}") for key, hint in hints if hint]
