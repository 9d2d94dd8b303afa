"""Text to ids. Bytes need no training and know no unknown: one id a byte, 0xFF ends a document."""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from redline.config.trial import VOCAB_SIZE
from redline.files import UserError

SEPARATOR = 0xFF  # occurs in no UTF-8 text


@dataclass(frozen=True)
class ByteTokenizer:
    """UTF-8 bytes as ids 0-254; 255 ends a document."""

    name: str = "bytes"
    vocab_size: int = VOCAB_SIZE["bytes"]
    separator: int = SEPARATOR

    @property
    def sha256(self) -> str:
        return hashlib.sha256(b"redline bytes, separator 255, version 1").hexdigest()

    def encode(self, text: str) -> NDArray[np.unsignedinteger]:
        """Ids of one document without its separator.

        Raises:
            UserError: the text holds half a surrogate pair, which is no character.
        """
        try:
            return np.frombuffer(text.encode("utf-8"), dtype=np.uint8)
        except UnicodeEncodeError as error:
            raise UserError(f"not valid text: {error.reason} at character {error.start}") from None

    def decode(self, ids: NDArray[np.unsignedinteger]) -> str:
        """Text of ids; a document's end shows as a line of its own."""
        parts = bytes(ids.tolist()).split(bytes([SEPARATOR]))
        return "\n<|end of document|>\n".join(part.decode("utf-8", "replace") for part in parts)


def id_dtype(vocab_size: int) -> np.dtype[np.unsignedinteger]:
    """The smallest unsigned type that holds every id."""
    for dtype in (np.uint8, np.uint16, np.uint32):
        if vocab_size - 1 <= np.iinfo(dtype).max:
            return np.dtype(dtype)
    raise UserError(f"a vocabulary of {vocab_size} ids does not fit into 32 bits")


def narrow(ids: NDArray[np.integer], vocab_size: int) -> NDArray[np.unsignedinteger]:
    """`ids` in the smallest type of their vocabulary; never a silent wrap.

    Raises:
        UserError: an id lies outside the vocabulary.
    """
    if len(ids) and not (int(ids.min()) >= 0 and int(ids.max()) < vocab_size):
        worst = int(ids.max()) if int(ids.max()) >= vocab_size else int(ids.min())
        raise UserError(
            f"token id {worst} lies outside the vocabulary of {vocab_size} "
            f"({id_dtype(vocab_size)} ids)"
        )
    return ids.astype(id_dtype(vocab_size))
