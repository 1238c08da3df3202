from __future__ import annotations

from typing import Any

import pytest

from pi_core import Build, ConfigError, HookError, SelectionContext, hookimpl

from . import samples
from .kinds import FirstHook
from .making import holding, run
from .wrapping import WrappedRaising


class TestResolveModel(FirstHook, WrappedRaising):
    hook = "resolve_model"
    wrong = (
        "provider/id",
        {"id": "x"},
    )
    none_is_an_outcome = True

    def arguments(self) -> dict[str, Any]:
        return {"name": "provider/id", "ctx": SelectionContext()}

    def answer(self, number: int) -> Any:
        return samples.model(number)

    def build(self, *answers: Any) -> Build:
        def resolve(self: Any, name: str | None, ctx: SelectionContext) -> Any:
            ctx.notice(f"asked for {name}")
            answer = answers[0]
            if isinstance(answer, Exception):
                raise answer
            return answer

        return Build([holding("models", resolve_model=hookimpl(resolve))], only=[])

    def test_a_build_resolves_names_and_passes_notices_on(self) -> None:
        selection = SelectionContext()
        assert run(self.build(samples.model(4)).resolve_model(None, selection)) == samples.model(4)
        assert selection.notices == ["asked for None"]

    def test_a_name_nobody_knows(self) -> None:
        with pytest.raises(ConfigError, match="No plugin knows the model 'x/y'"):
            run(self.build(None).resolve_model("x/y"))
        with pytest.raises(ConfigError, match="Three ways to get one"):
            run(self.build(None).resolve_model(None))

    def test_what_a_plugin_says_about_a_name_comes_out_as_it_is(self) -> None:
        with pytest.raises(ConfigError) as caught:
            run(self.build(ConfigError("There is no provider 'opnai'")).resolve_model("opnai/x"))
        assert str(caught.value) == "There is no provider 'opnai'"
        with pytest.raises(HookError, match=r"boom \(plugin 'models', hook resolve_model\)"):
            run(self.build(ValueError("boom")).resolve_model("x"))
