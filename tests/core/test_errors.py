from __future__ import annotations

import pytest

from pi_core import errors
from pi_core.errors import (
    HookError,
    PiError,
    PluginConflictError,
    PluginFailure,
    PluginLoadError,
    ToolArgumentsError,
    describe_owner,
    error_text,
)


def test_everything_raised_on_purpose_is_a_pi_error() -> None:
    raised = [found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, BaseException)]
    assert len(raised) == 10
    assert all(issubclass(error, PiError) for error in raised)


def test_a_fault_of_a_plugin_names_it() -> None:
    error = HookError("boom", plugin="p", hook="on_turn_end", distribution="pi-p 1.2")
    assert (str(error), error.plugin, error.distribution, error.hook) == ("boom", "p", "pi-p 1.2", "on_turn_end")
    assert PluginLoadError("no", plugin="p").distribution == ""
    assert PluginConflictError("two", plugin="a", owners=["a", "b"]).owners == ("a", "b")


def test_an_owner_is_described_with_its_distribution_when_it_has_one() -> None:
    assert describe_owner("p", "pi-p 1.2") == "plugin 'p' (pi-p 1.2)"
    assert describe_owner("p") == "plugin 'p'"


def test_a_report_says_who_where_what_and_whether_it_is_over() -> None:
    failure = PluginFailure("p", "pi-p 1.2", "on_turn_end", ValueError("boom"))
    assert str(failure) == "plugin 'p' (pi-p 1.2), hook on_turn_end: ValueError: boom"
    off = PluginFailure("p", "", "on_turn_end", ValueError("boom"), disabled=True)
    assert str(off) == "plugin 'p', hook on_turn_end: ValueError: boom; switched off for the rest of this run"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("boom"), "boom"),
        (ValueError(), ""),
        (KeyError("name"), "KeyError: 'name'"),
        (FileNotFoundError(2, "No such file", "x"), "[Errno 2] No such file: 'x'"),
    ],
)
def test_the_text_of_an_exception(error: Exception, text: str) -> None:
    assert error_text(error) == text


def test_arguments_that_do_not_fit_keep_the_places() -> None:
    assert ToolArgumentsError("no", ["a.b", "root"]).paths == ("a.b", "root")
