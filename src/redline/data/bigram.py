"""The loss that counting alone reaches: the line between a model that learned and one that failed.

Witten-Bell bigrams of the training tokens, scored on the evaluation tokens (protocol, section 6).
"""

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.unsignedinteger]


def unigram_loss(train: Ids, evaluation: Ids, vocab_size: int) -> float:
    """Nats per target under add-one unigrams; targets are all tokens but the first."""
    return float(-np.log(_unigram(train, vocab_size)[evaluation[1:]]).mean())


def bigram_loss(train: Ids, evaluation: Ids, vocab_size: int) -> float:
    """Nats per target under p(w|v) = (c(v,w) + T(v) p1(w)) / (c(v) + T(v)).

    T(v) counts the distinct followers of v, p1 is the add-one unigram, which alone speaks where v
    was never seen.
    """
    seen, counts = np.unique(_pairs(train, vocab_size), return_counts=True)
    first = seen // vocab_size
    total_V = np.bincount(first, weights=counts, minlength=vocab_size)
    followers_V = np.bincount(first, minlength=vocab_size).astype(float)
    wanted = _pairs(evaluation, vocab_size)
    place = np.minimum(np.searchsorted(seen, wanted), len(seen) - 1)
    count = np.where(seen[place] == wanted, counts[place], 0)
    v, w = np.divmod(wanted, vocab_size)
    p1 = _unigram(train, vocab_size)[w]
    known = total_V[v] > 0
    p = np.where(
        known,
        (count + followers_V[v] * p1) / np.where(known, total_V[v] + followers_V[v], 1.0),
        p1,
    )
    return float(-np.log(p).mean())


def _unigram(train: Ids, vocab_size: int) -> NDArray[np.float64]:
    counts = np.bincount(train, minlength=vocab_size)
    return (counts + 1) / (len(train) + vocab_size)


def _pairs(ids: Ids, vocab_size: int) -> NDArray[np.int64]:
    """Each pair of neighbours as one number."""
    wide = ids.astype(np.int64)
    return wide[:-1] * vocab_size + wide[1:]
