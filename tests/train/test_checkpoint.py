"""A checkpoint knows when it is not whole."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from redline.train.checkpoint import DamagedError, pack, unpack

TENSORS = {"weight/a": torch.arange(6.0).view(2, 3), "exp_avg/a": torch.ones(2, 3)}
CONTENT = pack(TENSORS, {"step": 3, "init_loss": float("inf")})


def test_it_comes_back_with_its_bits():
    tensors, state = unpack(CONTENT)
    assert state == {"step": 3, "init_loss": float("inf")}
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)
    assert {t.dtype for t in tensors.values()} == {torch.float32}


@given(place=st.integers(0, len(CONTENT) - 1), bit=st.integers(0, 7))
def test_a_flipped_bit_is_found(place, bit):
    altered = bytearray(CONTENT)
    altered[place] ^= 1 << bit
    try:
        tensors, state = unpack(bytes(altered))
    except DamagedError:
        return
    # A flip in the padding or the spelling of the header may leave every value as it was.
    assert state == {"step": 3, "init_loss": float("inf")}
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)


@given(end=st.integers(0, len(CONTENT) - 1))
def test_a_cut_file_is_found(end):
    with pytest.raises(DamagedError):
        unpack(CONTENT[:end])


def test_foreign_bytes_are_never_unpickled():
    with pytest.raises(DamagedError):
        unpack(b"\x80\x04\x95cos\nsystem\n")
