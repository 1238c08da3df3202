"""What is not shown."""

from __future__ import annotations

import pytest

from pi_plugins.config.secrets import MASK, is_secret_name, masked, without_secrets


@pytest.mark.parametrize(
    "name", ["apiKey", "api_key", "Authorization", "clientSecret", "accessToken", "token", "PASSWORD"]
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["reserveTokens", "theme", "keepRecentTokens", "keybindings"])
def test_names_of_other_values(name: str) -> None:
    assert not is_secret_name(name)


def test_keys_and_users_of_addresses_are_cut_out_of_texts() -> None:
    text = "Bearer abcdefghij, sk-ant-1234567890, http://ada:word@host/x?y"
    assert without_secrets(text) == f"{MASK}, {MASK}, http://{MASK}@host/x?y"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://a.example/v1?key=planted", "https://a.example/v1?key=***"),
        ("https://a.example/?v=1&api-key=planted&w=2", "https://a.example/?v=1&api-key=***&w=2"),
        ("https://a.example/?keys=2", "https://a.example/?keys=2"),
    ],
)
def test_keys_are_cut_out_of_the_query_of_an_address(address: str, shown: str) -> None:
    assert without_secrets(f'got "{address}"') == f'got "{shown}"'


def test_values_are_masked_at_any_depth() -> None:
    value = {"a": [{"apiKey": "x", "n": 1}], "token": ["y"], "password": None, "cookie": False}
    assert masked(value) == {"a": [{"apiKey": MASK, "n": 1}], "token": MASK, "password": None, "cookie": False}
