"""`pattern` with JavaScript's syntax, and the checked formats."""

import pytest

from pi_core._arguments.js_regex import compile_pattern
from pi_core._arguments.validation import ArgumentsValidator, InvalidArguments


def accepts(schema, value):
    try:
        ArgumentsValidator({"properties": {"v": schema}}).validate({"v": value})
    except InvalidArguments:
        return False
    return True


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("b", ["abc"], ["", "B"]),
        ("^a$", ["a"], ["a\n", "b\na"]),
        (r"^\d+$", ["42"], ["٤٢"]),
        (r"^\w+$", ["a_1"], ["é"]),
        (r"^\W$", ["é", " "], ["a"]),
        (r"^\s+$", [" \t\u00a0\ufeff\u2028"], ["\x1c", "\x85"]),
        (r"^\S+$", ["a\x85"], ["a\u00a0"]),
        (r"^[\s\S]$", ["\n", "\u00a0", "a"], [""]),
        (r"\bé", ["aé"], ["é", " é"]),
        ("^.$", ["a", "😀", "\x85"], ["", "ab", "\n", "\r", "\u2028"]),
        (r"^\-x$", ["-x"], ["x"]),
        (r"^[\w-.]+@[\w.-]+$", ["a-b.c@d-e"], ["a+b@c"]),
        (r"^[.-\d]$", ["-", ".", "5"], ["/"]),
        ("^[-a]$", ["-", "a"], ["b"]),
        ("^[+--]$", ["+", ",", "-"], ["."]),
        ("^[[a&&b||c~~]+$", ["[a&b|c~"], ["]"]),
        (r"^[\]\\^]+$", ["]\\^"], ["a"]),
        ("^[]$", [], ["", "]"]),
        ("^[^]$", ["a", "\n"], [""]),
        ("^[^a]$", ["b", "\n"], ["a"]),
        (r"^[\b]$", ["\b"], ["b"]),
        ("(?<y>[0-9]{4})-\\k<y>", ["2026-2026"], ["2026-2025"]),
        ("(?<=a)b(?!c)", ["ab"], ["b", "abc"]),
        ("(?<!a)b", ["b"], ["ab"]),
        (r"^(a)\1$", ["aa"], ["a"]),
        (r"^\u0061\u{1F600}\x62\ud83d\ude00\cJ\0$", ["a😀b😀\n\0"], ["a"]),
        (r"^[\u{1F600}-\u{1F602}]$", ["😁"], ["😃"]),
        (r"^\/\#\e$", ["/#e"], ["/#"]),
        ("^a{2}b{1,}c{,3}d{$", ["aabc{,3}d{"], ["aabccd{"]),
        (r"^\p{Lu}\p{L}*[\p{Nd}_-]+\P{L}$", ["Éa٣-!"], ["éa3!", "Éa3a"]),
        (r"^[^\p{Punctuation}]$", ["a"], ["!"]),
        (r"^\p{gc=Nd}\p{General_Category=Letter}$", ["1a"], ["a1"]),
        (r"\Aa\Z", ["a"], ["ab", "a\n"]),
        (r"^a\z", ["a"], ["ab"]),
        ("(?i)^abc$", ["ABC"], ["abd"]),
        ("(?s)^.$", ["\n"], [""]),
        ("(?P<q>['\"]).*(?P=q)", ["'a'"], ["'a\""]),
        ("^\t\v\f\\t\\v\\f$", ["\t\v\f\t\v\f"], [""]),
        ("^(?:a|b)(?=c)", ["ac"], ["ab"]),
    ],
    ids=str,
)
def test_javascript_pattern(pattern, yes, no):
    assert compile_pattern(pattern).problem == ""
    for text in yes:
        assert accepts({"pattern": pattern}, text), text
    for text in no:
        assert not accepts({"pattern": pattern}, text), text


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "missing ), unterminated subpattern"),
        ("[a", "unterminated character set"),
        ("a\\", r"\ at end of pattern"),
        ("*", "nothing to repeat"),
        ("[b-a]", "bad character range"),
        ("(?<=a+)b", "look-behind requires fixed-width pattern"),
        (r"\p{Script=Greek}", r"\p{Script=Greek} is not a general category"),
        (r"\u{110000}", r"no character \u{110000}"),
        ("(" * 5000 + ")" * 5000, "maximum recursion depth exceeded"),
    ],
    ids=lambda value: value[:30],
)
def test_pattern_that_cannot_be_used_rejects_its_place(pattern, reason):
    schema = {"properties": {"v": {"pattern": pattern}, "o": {"patternProperties": {pattern: {}}}}}
    validator = ArgumentsValidator(schema)
    assert validator.validate({"v": 1}) == {"v": 1}
    with pytest.raises(InvalidArguments) as caught:
        validator.validate({"v": "a", "o": {"a": 1}})
    assert [path for path, _ in caught.value.errors] == ["v", "o"]
    for _, message in caught.value.errors:
        assert message.startswith(f"invalid schema: pattern {pattern} cannot be used (")
        assert reason in message


FORMATS = {
    "date": (["2026-02-28", "2024-02-29", "2000-02-29"], ["2026-02-29", "1900-02-29", "2026-13-01", "2026-00-10",
     "26-01-01"]),
    "time": (["23:59:59Z", "08:30:06.28+01:00", "23:59:60Z", "22:59:60-01:00"], ["24:00:00Z", "08:30:06", "22:59:60Z",
     "1:2:3Z"]),
    "date-time": (["2026-01-01T00:00:00Z", "2026-01-01t00:00:00.1+23:59"], ["2026-01-01", "2026-01-01T00:00:00",
     "2026-02-30T00:00:00Z"]),
    "duration": (["P1Y2M3DT4H5M6S", "PT1H", "P2W"], ["P", "PT", "1D", "P1Y2W", "P1.5D", "PT1D"]),
    "email": (["a@b.co", "joe.o'neil+tag@mail.example.com"], ["nope", "a@b", "a b@c.de", "@b.co", ".a@b.co",
     "a@-b.co"]),
    "idn-email": (["실례@실례.테스트"], ["실례", "@b.co"]),
    "hostname": (["localhost", "a-b.example", "1.2.example"], ["-bad-", "a..b", "", "a_b", "a" * 64,
     ".".join(["a" * 60] * 5)]),
    "idn-hostname": (["실례.테스트", "a.b"], ["a..b", "-a"]),
    "ipv4": (["127.0.0.1"], ["256.0.0.1", "127.0.0", "0127.0.0.1", "::1"]),
    "ipv6": (["::1", "::ffff:1.2.3.4"], ["1.2.3.4", "fe80::1%eth0", "12345::"]),
    "uri": (["https://u:p@x.test:8/a?b#c", "urn:isbn:1", "http://[::1]/"], ["/a", "x", "http://a b", "http://é",
     "https://x/%zz"]),
    "uri-reference": (["/a/b?c", "a", "", "#f", "//h/p"], ["a b", "\\a", "1:2é"]),
    "iri": (["https://é.test/ü"], ["é", "http://a b"]),
    "iri-reference": (["/ü", "é"], ["a b", "\\é"]),
    "url": (["ftp://x", "https://x.test/ü"], ["x", "http://a b"]),
    "uri-template": (["/a{/b*}{?c:3,d}", "/a"], ["/a{b", "{}", "a b"]),
    "uuid": (["123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-426614174000"], ["123",
     "123e4567e89b12d3a456426614174000"]),
    "regex": (["^a$", "(?<n>x)", r"\p{Script=Greek}", "(?<=a+)b"], ["(", "[", "*"]),
    "json-pointer": (["", "/a/b~0~1", "/"], ["a", "/~2", "#/a"]),
    "relative-json-pointer": (["0", "1/a", "2#"], ["/a", "01", "-1", "#"]),
    "json-pointer-uri-fragment": (["#", "#/a%20b"], ["/a", "#a", "#/a b"]),
    "unknown": (["anything"], []),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_format(name):
    yes, no = FORMATS[name]
    for text in yes:
        assert accepts({"format": name}, text), text
    for text in no:
        assert not accepts({"format": name}, text), text
    if name not in ("regex", "json-pointer", "relative-json-pointer", "unknown"):
        assert not accepts({"format": name}, f"{yes[0]}\n"), "a line break at the end is part of the text"
    assert accepts({"format": name}, 5)
