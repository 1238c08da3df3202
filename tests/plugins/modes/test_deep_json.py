"""Lines of JSON of any depth."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pi_core import user_message
from pi_plugins.modes._deep_json import deep_json
from pi_plugins.modes._stdout import json_line
from pi_plugins.sessions import Session

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_the_text_is_that_of_the_standard_library(value: Any) -> None:
    assert deep_json(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def test_the_tree_of_a_long_session_is_one_line() -> None:
    session = Session.in_memory("/work")
    for number in range(3_000):
        session.append_message(user_message(f"é {number}"))
    line = json_line({"tree": [node.to_json() for node in session.tree()]})
    assert line.count(b"\n") == 1
    assert line.endswith(b'"children":[]}' + b"]}" * 3_000 + b"\n")
    assert line.count('"text":"é '.encode()) == 3_000
