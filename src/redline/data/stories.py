"""The built-in corpus exists so that any experiment can start from a seed, without a download.

`story(seed, i)` tells a simple English children's story. Names, pronouns, a treasure with its color
and size, a town and a helper are settled at the start and return much later, so that a model gains
by looking far back. The text is the same bytes on every platform and Python version: all chance
comes from `random.Random(n).random()`, which Python promises to keep, and from nothing else.
"""

import hashlib
import random
import re
from collections.abc import Iterator, Sequence
from itertools import count

from redline.data.story_grammar import LEXICON, Chance, Facts, plural, rule, words_of, written
from redline.data.story_patterns import CAST
from redline.data.story_words import ANIMAL_NAMES, HE_NAMES, SHE_NAMES

# Part of the corpus's identity: bump it when any byte of any story changes.
VERSION: int = 1

_STORY = rule("story")
_CAST = {key: rule(key) for key in CAST}
_NAMES = {"she": words_of(SHE_NAMES), "he": words_of(HE_NAMES)}
_ANIMAL_NAMES = words_of(ANIMAL_NAMES)
_PRONOUNS = {"she": ("she", "her", "her"), "he": ("he", "him", "his")}
_CHILD = {"she": "girl", "he": "boy"}
_RELATIVES = {"she": ("Grandmother", "Mother"), "he": ("Grandfather", "Father")}
_TITLES = {
    "she": ("Aunt", "Granny", "Grandmother", "Miss", "Mrs.", "Old", "Queen"),
    "he": ("Captain", "Grandfather", "King", "Mr.", "Old", "Professor", "Uncle"),
}
_FIRST_NAME_TITLES = ("Aunt", "King", "Old", "Queen", "Uncle")

_CAPITAL = re.compile(r'\^"?.')
# Two patterns, since a pattern that begins with a letter is found several times faster.
_VOWEL = "(?=[aeiou]|hones|hour)(?!one|uni[^mn]|use)"
_AN = re.compile("a (?<![A-Za-z]a )" + _VOWEL)
_CAPITAL_AN = re.compile("A " + _VOWEL)


def story(seed: int, index: int) -> str:
    """The story at `index` of the corpus `seed`; it depends on these two numbers alone."""
    digest = hashlib.sha256(f"{seed}:{index}".encode("ascii")).digest()
    chance = random.Random(int.from_bytes(digest, "big")).random
    facts = _characters(chance)
    _settle(facts, chance)
    return _finished(written(_STORY, facts, chance))


def stories(seed: int) -> Iterator[str]:
    """Every story of the corpus `seed`, in order and without end."""
    for index in count():
        yield story(seed, index)


def _pick(words: Sequence[str], chance: Chance) -> str:
    return words[int(chance() * len(words))]


def _characters(chance: Chance) -> Facts:
    facts: Facts = {}
    hero = "she" if chance() < 0.5 else "he"
    # A friend of the other gender lets a pronoun say who is meant; not every story is so easy.
    unlike = "he" if hero == "she" else "she"
    friend = unlike if chance() < 0.8 else hero
    elder = "she" if chance() < 0.5 else "he"
    for role, gender in (("hero", hero), ("friend", friend)):
        name, facts[f"{role}.kind"] = _child_or_animal(gender, chance)
        while name in facts.values():
            name, facts[f"{role}.kind"] = _child_or_animal(gender, chance)
        facts[role] = name
    facts["elder"] = _elder(elder, chance)
    for role, gender in (("hero", hero), ("friend", friend), ("elder", elder)):
        facts[f"{role}.he"], facts[f"{role}.him"], facts[f"{role}.his"] = _PRONOUNS[gender]
    return facts


def _child_or_animal(gender: str, chance: Chance) -> tuple[str, str]:
    """A name and the kind of creature that bears it."""
    if chance() < 0.6:
        return _pick(_NAMES[gender], chance), _CHILD[gender]
    names = _ANIMAL_NAMES if chance() < 0.6 else _NAMES[gender]
    return _pick(names, chance), _pick(LEXICON["animal"], chance)


def _elder(gender: str, chance: Chance) -> str:
    if chance() < 0.3:
        return _pick(_RELATIVES[gender], chance)
    title = _pick(_TITLES[gender], chance)
    names = _NAMES[gender] if title in _FIRST_NAME_TITLES else LEXICON["surname"]
    return f"{title} {_pick(names, chance)}"


def _settle(facts: Facts, chance: Chance) -> None:
    """Adds what the story is about besides its characters, no two things the same."""
    for key, choice in _CAST.items():
        thing = written(choice, facts, chance)
        while thing in facts.values():
            thing = written(choice, facts, chance)
        facts[key] = thing
    facts["food.s"] = plural(facts["food"])


def _finished(text: str) -> str:
    """The text with the capitals, articles and paragraphs that its patterns only mark."""
    text = _CAPITAL.sub(lambda mark: mark[0][1:].upper(), text)
    text = _CAPITAL_AN.sub("An ", _AN.sub("an ", text))
    return "\n".join([" ".join(paragraph.split()) for paragraph in text.split("//")])
