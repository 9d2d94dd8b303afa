"""Reads the stories' pattern tables into a grammar that can be written out fast, many times over.

`story_patterns.py` explains the notation. Every pattern is parsed once, on first use, into nested
choices; writing a text is then a walk that makes one draw per choice.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from redline.data.story_patterns import CAST, PHRASES, SENTENCES
from redline.data.story_plots import PLOTS
from redline.data.story_words import IRREGULAR_PASTS, IRREGULAR_PLURALS, NOUNS, VERBS, WORDS

Facts: TypeAlias = dict[str, str]
Chance: TypeAlias = Callable[[], float]  # a draw from [0, 1)


class Fact(NamedTuple):
    """A place in a pattern that something settled for the whole story fills."""

    key: str


@dataclass(slots=True)
class Choice:
    """A place in a pattern with alternatives, all equally likely."""

    options: "list[str | list[Node]]"


Node: TypeAlias = str | Fact | Choice


class _Voice(NamedTuple):
    """How a pattern is told: the inflection of its verbs, and the role its pronouns follow."""

    form: str
    role: str


def words_of(table: str) -> list[str]:
    return [" ".join(word.split()) for word in table.split(",")]


def _pairs_of(table: str) -> dict[str, str]:
    return {words.split()[0]: words.split()[1] for words in table.split(",")}


def _patterns_of(table: str) -> dict[str, list[str]]:
    rules: dict[str, list[str]] = {}
    name = ""
    for line in table.strip().splitlines():
        if line.startswith(" "):
            rules[name].append(" ".join(line.split()))
        else:
            name = line.removesuffix(":")
            rules[name] = []
    return rules


_PASTS = _pairs_of(IRREGULAR_PASTS)
_PLURALS = _pairs_of(IRREGULAR_PLURALS)
_DOUBLING = re.compile(r"(?:[^aeiou]*|squ)[aeiou][^aeiouwxy]|.*(?:gin|get|mit)")


def _stem(verb: str) -> str:
    """The verb as it stands before -ed and -ing: after a short vowel its consonant doubles."""
    return verb + verb[-1] if _DOUBLING.fullmatch(verb) else verb


def _past(phrase: str) -> str:
    verb, space, rest = phrase.partition(" ")
    if verb in _PASTS:
        past = _PASTS[verb]
    elif verb.endswith("e"):
        past = verb + "d"
    elif re.search(r"[^aeiou]y$", verb):
        past = verb[:-1] + "ied"
    else:
        past = _stem(verb) + "ed"
    return past + space + rest


def _ing(phrase: str) -> str:
    verb, space, rest = phrase.partition(" ")
    if verb.endswith("ie"):
        stem = verb[:-2] + "y"
    elif re.search(r"[^eo]e$", verb):
        stem = verb[:-1]
    else:
        stem = _stem(verb)
    return stem + "ing" + space + rest


def plural(phrase: str) -> str:
    rest, space, noun = phrase.rpartition(" ")
    if noun in _PLURALS:
        many = _PLURALS[noun]
    elif re.search(r"(s|x|z|ch|sh|tato)$", noun):
        many = noun + "es"
    elif re.search(r"[^aeiou]y$", noun):
        many = noun[:-1] + "ies"
    elif noun.endswith("man"):
        many = noun[:-3] + "men"
    else:
        many = noun + "s"
    return rest + space + many


def _unchanged(phrase: str) -> str:
    return phrase


_INFLECTIONS: Mapping[str, Callable[[str], str]] = {
    "": _unchanged,
    "past": _past,
    "ing": _ing,
    "s": plural,
}
LEXICON: Mapping[str, list[str]] = {
    name: words_of(words) for table in (NOUNS, VERBS, WORDS) for name, words in table.items()
}
_PATTERNS: Mapping[str, list[str]] = {
    **{name: [pattern] for name, pattern in CAST.items()},
    **_patterns_of(PHRASES),
    **_patterns_of(SENTENCES),
    **_patterns_of(PLOTS),
}
_ROLES = ("hero", "friend", "elder")
_OTHER = {"hero": "friend", "friend": "hero", "elder": "hero"}
_RELATIVE = {"who": "", "he": ".he", "him": ".him", "his": ".his", "kind": ".kind"}
_TOKEN = re.compile(r"<[^<>]+>|\{\w+\}|[()\[\]|]|[^<{()\[\]|]+")
_CLOSING = {"(": ")", "[": "]"}
_rules: dict[tuple[str, _Voice], Choice] = {}


def rule(name: str, form: str = "", role: str = "hero") -> Choice:
    """The rule of that name; a lexical one inflected to `form`, a pattern one told in it."""
    voice = _Voice(form, role)
    if (name, voice) not in _rules:
        # The entry must exist before its options: rules may lead back to themselves.
        _rules[name, voice] = choice = Choice([])
        if name in LEXICON:
            choice.options += [_INFLECTIONS[form](word) for word in LEXICON[name]]
        else:
            choice.options += [_pattern(line, voice) for line in _PATTERNS[name]]
    return _rules[name, voice]


def _pattern(line: str, voice: _Voice) -> str | list[Node]:
    nodes, end = _sequence(iter(_TOKEN.findall(line)), voice)
    if end:
        raise ValueError(f"unexpected {end} in the pattern: {line}")
    return _simplest(nodes)


def _sequence(tokens: Iterator[str], voice: _Voice) -> tuple[list[Node], str]:
    """The nodes up to the bar or bracket that ends them, and that bar or bracket."""
    nodes: list[Node] = []
    for token in tokens:
        if token in ("|", ")", "]"):
            return nodes, token
        if token in _CLOSING:
            nodes.append(_alternatives(tokens, token, voice))
        elif token.startswith("<"):
            nodes.append(_reference(token[1:-1], voice))
        elif token.startswith("{"):
            nodes.append(_INFLECTIONS[voice.form](token[1:-1]))
        else:
            nodes.append(token)
    return nodes, ""


def _alternatives(tokens: Iterator[str], opening: str, voice: _Voice) -> Choice:
    choice = Choice([])
    end = "|"
    while end == "|":
        nodes, end = _sequence(tokens, voice)
        choice.options.append(_simplest(nodes))
    if end != _CLOSING[opening]:
        raise ValueError(f"a {opening} in a pattern is closed by '{end}'")
    if opening == "[":
        choice.options += [""] * len(choice.options)
    return choice


def _simplest(nodes: list[Node]) -> str | list[Node]:
    if all(isinstance(node, str) for node in nodes):
        return "".join(node for node in nodes if isinstance(node, str))
    return nodes


def _reference(text: str, voice: _Voice) -> Fact | Choice:
    """What `<text>` stands for in a pattern told in this voice."""
    text, _, teller = text.partition(":")
    role = _OTHER[voice.role] if teller == "other" else teller or voice.role
    name, _, suffix = text.partition(".")
    if name in _RELATIVE:
        return Fact(role + _RELATIVE[name])
    if name == "other":
        return Fact(_OTHER[role] + text.removeprefix(name))
    if name in _ROLES or name in CAST:
        return Fact(text)
    if name.endswith("*"):
        return rule(name[:-1], voice.form, role)
    return rule(name, suffix, role)


def written(choice: Choice, facts: Facts, chance: Chance) -> str:
    """One text of the rule."""
    pieces = ["", ""]
    _write(choice, facts, chance, pieces)
    return "".join(pieces)


def _write(choice: Choice, facts: Facts, chance: Chance, pieces: list[str]) -> None:
    options = choice.options
    option = options[int(chance() * len(options))]
    # "A cold, cold day" or "a bell and a bell" would read as a slip: draw another word.
    while option == pieces[-2] != "" and len(options) > 1:
        option = options[int(chance() * len(options))]
    if isinstance(option, str):
        pieces.append(option)
        return
    for node in option:
        if isinstance(node, str):
            pieces.append(node)
        elif isinstance(node, Choice):
            _write(node, facts, chance, pieces)
        else:
            pieces.append(facts[node.key])
