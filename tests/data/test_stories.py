import hashlib
import os
import random
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import islice

import pytest

from redline.data.stories import stories, story
from redline.data.story_grammar import rule
from redline.data.story_patterns import CAST, PHRASES, SENTENCES
from redline.data.story_plots import PLOTS
from redline.data.story_words import NOUNS, VERBS, WORDS

FIRST_MEGABYTE = "9c5bf95e37318e99b987023133c93f16d0fb762d8d24219c51f9d29e3e908c15"


def first_megabyte_hash() -> str:
    text = "\n\n".join(islice(stories(seed=0), 1300)).encode("ascii")[:1_000_000]
    assert len(text) == 1_000_000
    return hashlib.sha256(text).hexdigest()


@cache
def sample() -> list[str]:
    return list(islice(stories(seed=7), 1000))


def offenders(pattern: str) -> list[str]:
    """Every match in the sample, with the text around it, for a failure that explains itself."""
    return [
        text[max(0, match.start() - 40) : match.end() + 40]
        for text in sample()
        for match in re.finditer(pattern, text, re.MULTILINE)
    ]


def test_the_first_megabyte_of_seed_0_never_changes() -> None:
    assert first_megabyte_hash() == FIRST_MEGABYTE, (
        "The text of the stories changed. If that was on purpose, bump stories.VERSION and set "
        "FIRST_MEGABYTE to the new hash; if not, some change here made the corpus another one."
    )


def test_a_new_process_with_another_hash_seed_writes_the_same_bytes() -> None:
    program = (
        "import hashlib; from itertools import islice; from redline.data.stories import stories\n"
        "text = '\\n\\n'.join(islice(stories(seed=0), 1300)).encode('ascii')[:1_000_000]\n"
        "print(hashlib.sha256(text).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "4321", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == first_megabyte_hash()


def test_story_i_depends_on_seed_and_index_alone() -> None:
    in_order = list(islice(stories(seed=3), 20))
    random.seed(99)
    backwards = [story(3, index) for index in reversed(range(20))]
    assert backwards[::-1] == in_order


def test_two_seeds_share_no_story() -> None:
    assert not set(islice(stories(seed=0), 300)) & set(islice(stories(seed=1), 300))


def test_chance_comes_from_random_dot_random_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [story(5, index) for index in range(50)]

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("only Random.random() is the same on every Python version")

    for name in dir(random.Random):
        drawing = callable(getattr(random.Random, name)) and not name.startswith("_")
        if drawing and name not in ("random", "seed"):
            monkeypatch.setattr(random.Random, name, refuse)
    assert [story(5, index) for index in range(50)] == expected


def test_stories_are_plain_ascii_without_the_marks_of_the_pattern_notation() -> None:
    assert all(text.isascii() for text in sample())
    assert offenders(r"[<>{}()\[\]|^/\\*_]") == []


def test_stories_are_short_and_of_many_lengths() -> None:
    lengths = sorted(map(len, sample()))
    assert 500 < lengths[10] < 850
    assert 950 < lengths[500] < 1150
    assert 1300 < lengths[-10] < 1700


def test_every_story_has_several_paragraphs_and_none_is_empty() -> None:
    for text in sample():
        paragraphs = text.split("\n")
        assert len(paragraphs) >= 4
        assert all(paragraphs)


def test_spaces_are_single_and_never_stand_before_punctuation() -> None:
    assert offenders(r"  | [,.;:!?]|^ | $|[,.;:!?]{2}") == []


def test_quotes_are_balanced_in_every_paragraph() -> None:
    unbalanced = [
        paragraph for text in sample() for paragraph in text.split("\n") if paragraph.count('"') % 2
    ]
    assert unbalanced == []


def test_sentences_start_with_a_capital_and_end_with_a_mark() -> None:
    assert offenders(r'^"?[a-z]') == []
    assert offenders(r"[.!?] \"?[a-z]") == []
    assert offenders(r'\." [a-z]') == []
    assert offenders(r'[^.!?"]$|[^.!?,]"$') == []


def test_a_stands_before_consonants_and_an_before_vowels() -> None:
    assert offenders(r"\b[Aa] (?!one|uni[^mn]|use)([aeiouAEIOU]|hour|hones)") == []
    assert offenders(r"\b[Aa]n (?!hour|hones)[^aeiou]") == []
    assert offenders(r"\b[Aa]n (one\b|uni[^mn]|use)") == []


def test_no_word_stands_twice_in_a_row() -> None:
    assert offenders(r"\b([A-Za-z]+),? \1\b(?!-)") == []


def test_the_hero_returns_in_the_last_third_of_most_stories() -> None:
    """The hero is the one whose name is said most often; a name said late was read early."""
    returning = 0
    for text in sample():
        names = Counter(re.findall(r"(?<=[a-z,] )[A-Z][a-z]+", text))
        hero = max(names, key=lambda name: names[name])
        returning += hero in text[2 * len(text) // 3 :] and hero in text[: len(text) // 3]
    assert returning > 900


def test_long_sentences_are_rarely_repeated() -> None:
    """A small set of templates would repeat itself, and such a text is too easy to predict."""
    sentences = [
        sentence
        for text in sample()
        for sentence in re.split(r'(?<=[.!?])(?<!Mr\.)(?<!Mrs\.)"? ', text.replace("\n", " "))
        if len(sentence.split()) >= 6
    ]
    repeated = sum(times - 1 for times in Counter(sentences).values())
    assert repeated / len(sentences) < 0.02


def test_no_two_tables_name_the_same_rule() -> None:
    patterns = "".join((PHRASES, SENTENCES, PLOTS))
    names = [*CAST, *NOUNS, *VERBS, *WORDS, *re.findall(r"^(\w+):$", patterns, re.MULTILINE)]
    assert [name for name, times in Counter(names).items() if times > 1] == []


@pytest.mark.parametrize(
    ("table", "form", "inflected"),
    [
        ("go", "past", {"crept", "hurried", "jogged", "limped", "ran", "stole", "trekked"}),
        ("go", "ing", {"bouncing", "creeping", "hurrying", "running", "skipping", "tiptoeing"}),
        ("handle", "past", {"buried", "knocked over", "picked up", "put away", "wound up"}),
        ("handle", "ing", {"carrying", "digging up", "forgetting", "lending", "squeezing"}),
        ("speak", "past", {"admitted", "cried", "said", "whispered"}),
        ("critter", "s", {"butterflies", "deer", "field mice", "foxes", "geese", "sheep"}),
        ("job", "s", {"bus drivers", "fishermen", "night watchmen", "nurses"}),
    ],
)
def test_words_are_inflected_as_english_wants(table: str, form: str, inflected: set[str]) -> None:
    assert inflected <= {option for option in rule(table, form).options if isinstance(option, str)}
