"""The Witten-Bell line, by hand and against a plain implementation."""

import math
from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.data.bigram import bigram_loss, unigram_loss


def plain(train, evaluation, vocab_size):
    unigrams, followers = Counter(train), defaultdict(Counter)
    for v, w in pairwise(train):
        followers[v][w] += 1

    def p(v, w):
        p1 = (unigrams[w] + 1) / (len(train) + vocab_size)
        count, distinct = sum(followers[v].values()), len(followers[v])
        return p1 if count == 0 else (followers[v][w] + distinct * p1) / (count + distinct)

    pairs = list(pairwise(evaluation))
    return -sum(math.log(p(v, w)) for v, w in pairs) / len(pairs)


def test_by_hand():
    # Training 0 1 0 1 0 2, evaluation 0 1: c(0,1) = 2, c(0) = 3, T(0) = 2, p1(1) = 3/9.
    train, evaluation = np.array([0, 1, 0, 1, 0, 2], np.uint8), np.array([0, 1], np.uint8)
    assert bigram_loss(train, evaluation, 3) == pytest.approx(-math.log((2 + 2 * 3 / 9) / 5))
    assert unigram_loss(train, evaluation, 3) == pytest.approx(-math.log(3 / 9))


@given(
    train=st.lists(st.integers(0, 5), min_size=2, max_size=60),
    evaluation=st.lists(st.integers(0, 5), min_size=2, max_size=20),
)
def test_it_equals_a_plain_implementation(train, evaluation):
    found = bigram_loss(np.array(train, np.uint8), np.array(evaluation, np.uint8), 6)
    assert found == pytest.approx(plain(train, evaluation, 6))


@given(train=st.lists(st.integers(0, 3), min_size=2, max_size=30))
def test_its_probabilities_sum_to_one(train):
    for v in range(4):
        losses = [
            bigram_loss(np.array(train, np.uint8), np.array([v, w], np.uint8), 4) for w in range(4)
        ]
        assert sum(math.exp(-loss) for loss in losses) == pytest.approx(1)
