"""Batch k as a pure function of (seed, k): nothing to save, nothing to restore.

An epoch visits every window of `block_size` tokens once, in an order drawn from (seed, epoch).
Depth, arm and learning rate do not enter, so every trial of a seed reads the same batches.
"""

import functools

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.unsignedinteger]


class Batches:
    """`batch(step)` of a token stream; each row is `block_size` inputs and their targets."""

    def __init__(self, tokens: Tokens, seed: int, batch_size: int, block_size: int):
        self.tokens, self.seed, self.batch_size = tokens, seed, batch_size
        self.n_window = (len(tokens) - 1) // block_size
        self.block_size = block_size
        self._within = np.arange(block_size + 1)

    def __call__(self, step: int) -> NDArray[np.int64]:
        """Rows (batch_size, block_size + 1) of update `step` (1-based)."""
        place = np.arange((step - 1) * self.batch_size, step * self.batch_size)
        epoch, index = np.divmod(place, self.n_window)
        window = np.array(
            [
                window_order(self.seed, e, self.n_window)[i]
                for e, i in zip(epoch, index, strict=True)
            ]
        )
        return self.tokens[window[:, None] * self.block_size + self._within].astype(np.int64)


@functools.lru_cache(maxsize=2)  # a batch can straddle two epochs
def window_order(seed: int, epoch: int, n_window: int) -> NDArray[np.int64]:
    """The order in which an epoch visits the windows."""
    sequence = np.random.SeedSequence((seed, epoch))
    return np.random.Generator(np.random.Philox(sequence)).permutation(n_window)


def evaluation_rows(tokens: Tokens, block_size: int) -> NDArray[np.int64]:
    """All windows of the evaluation tokens, in order: rows (n_window, block_size + 1)."""
    n_window = (len(tokens) - 1) // block_size
    starts = np.arange(n_window)[:, None] * block_size
    return tokens[starts + np.arange(block_size + 1)].astype(np.int64)
