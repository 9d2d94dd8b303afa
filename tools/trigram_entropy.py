"""Says how hard a text is for a trigram model, since a corpus that is too easy hides divergence.

Usage: python tools/trigram_entropy.py [FILE.jsonl|FILE.txt]      (default: the built-in stories)

A byte-level BPE of 4096 tokens and a trigram model are trained on the first million characters.
The model mixes trigram, bigram and add-one unigram frequencies; the mixture is fitted by EM on the
next 100,000 characters, and the 200,000 after those give the figure printed.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import log2
from pathlib import Path

from tokenizers import ByteLevelBPETokenizer

from redline.data.stories import stories

VOCABULARY = 4096
TRAIN, FIT, TEST = 1_000_000, 100_000, 200_000
EM_ROUNDS = 30

Triple = tuple[float, float, float]


def documents(path: Path | None) -> Iterator[str]:
    if path is None:
        yield from stories(seed=0)
    elif path.suffix == ".jsonl":
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)["text"]
    else:
        yield path.read_text(encoding="utf-8")


def leading_text(texts: Iterable[str], length: int) -> str:
    pieces: list[str] = []
    missing = length
    for text in texts:
        pieces.append(text + "\n\n")
        missing -= len(pieces[-1])
        if missing <= 0:
            return "".join(pieces)[:length]
    raise SystemExit(f"the text is too short: {length:,} characters are needed")


def component_probabilities(train: list[int], tokens: list[int]) -> list[Triple]:
    """What each model of the mixture gives each token of `tokens`, from the third on."""
    singles = Counter(train)
    pairs = Counter(pairwise(train))
    triples = Counter(zip(train, train[1:], train[2:], strict=False))
    total = len(train) + VOCABULARY
    rows: list[Triple] = []
    for a, b, c in zip(tokens, tokens[1:], tokens[2:], strict=False):
        trigram = triples[a, b, c] / pairs[a, b] if pairs[a, b] else 0.0
        bigram = pairs[b, c] / singles[b] if singles[b] else 0.0
        rows.append((trigram, bigram, (singles[c] + 1) / total))
    return rows


def mixture(weights: Triple, row: Triple) -> float:
    return sum(weight * probability for weight, probability in zip(weights, row, strict=True))


def fitted_weights(rows: list[Triple]) -> Triple:
    weights: Triple = (1 / 3, 1 / 3, 1 / 3)
    for _ in range(EM_ROUNDS):
        shares = [0.0, 0.0, 0.0]
        for row in rows:
            whole = mixture(weights, row)
            for part in range(3):
                shares[part] += weights[part] * row[part] / whole
        weights = (shares[0] / len(rows), shares[1] / len(rows), shares[2] / len(rows))
    return weights


def main(path: Path | None) -> None:
    text = leading_text(documents(path), TRAIN + FIT + TEST)
    train_text, fit_text, test_text = text[:TRAIN], text[TRAIN : TRAIN + FIT], text[TRAIN + FIT :]
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(train_text.split("\n\n"), vocab_size=VOCABULARY, show_progress=False)
    train, fit, test = (bpe.encode(part).ids for part in (train_text, fit_text, test_text))

    weights = fitted_weights(component_probabilities(train, fit))
    rows = component_probabilities(train, test)
    bits = -sum(log2(mixture(weights, row)) for row in rows) / len(rows)
    print(f"{bits:.2f} bits/token, {len(test_text.encode()) / len(test):.2f} bytes/token")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
