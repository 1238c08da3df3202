"""The values of ``format`` that are checked. Everything else a schema may name is ignored."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from .js_regex import compile_pattern

_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?:[zZ]|([+-])([0-9]{2}):?([0-9]{2}))")
_DURATION: Final = re.compile(
    r"P(?=.)(?:[0-9]+W|(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+S)?)?)"
)
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOSTNAME: Final = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")
_LOCAL: Final = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
_EMAIL: Final = re.compile(rf"{_LOCAL}@{_LABEL}(?:\.{_LABEL})+")
_IDN_EMAIL: Final = re.compile(r"[^\s@\"(),:;<>\[\\\]]+@[^\s@.]+(?:\.[^\s@.]+)+")
_UUID: Final = re.compile(r"(?:urn:uuid:)?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_POINTER: Final = r"(?:/(?:[^~/]|~[01])*)*"
_JSON_POINTER: Final = re.compile(_POINTER, re.DOTALL)
_RELATIVE_POINTER: Final = re.compile(rf"(?:0|[1-9][0-9]*)(?:#|{_POINTER})", re.DOTALL)
_POINTER_FRAGMENT: Final = re.compile(r"#(?:/(?:[A-Za-z0-9_.!$&'()*+,;:=@-]|%[0-9A-Fa-f]{2}|~[01])*)*")

_CHAR: Final = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2}UCS)"
_AUTHORITY: Final = (
    r"(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2}UCS)*@)?"
    r"(?:\[[0-9A-Fa-fvV:.]+\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2}UCS)*)(?::[0-9]*)?"
)
_TAIL: Final = rf"(?:\?(?:{_CHAR}|[/?])*)?(?:#(?:{_CHAR}|[/?])*)?"
_ABSOLUTE: Final = rf"[A-Za-z][A-Za-z0-9+.-]*:(?://{_AUTHORITY}(?:/{_CHAR}*)*|/?(?:{_CHAR}+(?:/{_CHAR}*)*)?){_TAIL}"
_SEGMENT_WITHOUT_COLON: Final = _CHAR.replace("=:@", "=@")
_RELATIVE: Final = (
    rf"(?://{_AUTHORITY}(?:/{_CHAR}*)*|/(?:{_CHAR}+(?:/{_CHAR}*)*)?"
    rf"|{_SEGMENT_WITHOUT_COLON}+(?:/{_CHAR}*)*)?{_TAIL}"
)
_UNICODE: Final = r"|[\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U0010fffd]"
_TEMPLATE: Final = re.compile(
    r"(?:[^\x00-\x20\x7f\"<>%\\^`{|}]|%[0-9A-Fa-f]{2}"
    r"|\{[+#./;?&=,!@|]?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*(?:\:[1-9][0-9]{0,3}|\*)?"
    r"(?:,(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*(?:\:[1-9][0-9]{0,3}|\*)?)*\})*"
)


def _full(pattern: str, unicode: bool = False) -> Callable[[str], bool]:
    compiled = re.compile(pattern.replace("UCS", _UNICODE if unicode else ""))
    return lambda text: compiled.fullmatch(text) is not None


def is_date(text: str) -> bool:
    """Return whether a text is a full date of the calendar."""
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= month <= 12 and 1 <= day <= _DAYS[month - 1] + leap


def is_time(text: str) -> bool:
    """Return whether a text is a time of day with its offset; a leap second only where UTC has one."""
    match = _TIME.fullmatch(text)
    if match is None:
        return False
    hour, minute, second = int(match[1]), int(match[2]), int(match[3])
    away_hours, away_minutes = int(match[5] or 0), int(match[6] or 0)
    if hour > 23 or minute > 59 or away_hours > 23 or away_minutes > 59:
        return False
    if second <= 59:
        return True
    away = (away_hours * 60 + away_minutes) * (-1 if match[4] == "-" else 1)
    return second == 60 and (hour * 60 + minute - away) % 1440 == 1439


def is_date_time(text: str) -> bool:
    """Return whether a text is a date and a time with its offset."""
    return text[10:11] in ("T", "t", " ") and is_date(text[:10]) and is_time(text[11:])


def _is_ip(text: str, version: int) -> bool:
    import ipaddress

    try:
        address = ipaddress.IPv4Address(text) if version == 4 else ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in str(address)


def _is_idn_hostname(text: str) -> bool:
    try:
        return _HOSTNAME.fullmatch(text.encode("idna").decode("ascii")) is not None
    except UnicodeError:
        return False


def _is_regex(text: str) -> bool:
    pattern = compile_pattern(text)
    return pattern.regex is not None or pattern.unsupported


def formats() -> dict[str, Callable[[str], bool]]:
    """Return every checked format with its test of a text."""
    return {
        "date": is_date,
        "date-time": is_date_time,
        "time": is_time,
        "duration": lambda text: _DURATION.fullmatch(text) is not None,
        "email": lambda text: _EMAIL.fullmatch(text) is not None,
        "idn-email": lambda text: _IDN_EMAIL.fullmatch(text) is not None,
        "hostname": lambda text: _HOSTNAME.fullmatch(text) is not None,
        "idn-hostname": _is_idn_hostname,
        "ipv4": lambda text: _is_ip(text, 4),
        "ipv6": lambda text: _is_ip(text, 6),
        "uri": _full(_ABSOLUTE),
        "uri-reference": _full(f"(?:{_ABSOLUTE}|{_RELATIVE})"),
        "iri": _full(_ABSOLUTE, unicode=True),
        "iri-reference": _full(f"(?:{_ABSOLUTE}|{_RELATIVE})", unicode=True),
        "url": _full(_ABSOLUTE, unicode=True),
        "uri-template": lambda text: _TEMPLATE.fullmatch(text) is not None,
        "uuid": lambda text: _UUID.fullmatch(text) is not None,
        "regex": _is_regex,
        "json-pointer": lambda text: _JSON_POINTER.fullmatch(text) is not None,
        "relative-json-pointer": lambda text: _RELATIVE_POINTER.fullmatch(text) is not None,
        "json-pointer-uri-fragment": lambda text: _POINTER_FRAGMENT.fullmatch(text) is not None,
    }
