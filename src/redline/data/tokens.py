"""Token files: a corpus prepared once, hashed, and shared by all trials through a memory map.

A token file is one safetensors file with the arrays `train` and `eval` and a manifest as metadata.
It lies in a cache that may be deleted; its hash is part of every trial's identity.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from safetensors.numpy import save

from redline.config.identity import Tokens, digest
from redline.config.trial import Data
from redline.data.bigram import bigram_loss, unigram_loss
from redline.data.sources import Source, find
from redline.data.tokenizer import ByteTokenizer, id_dtype, narrow
from redline.files import UserError, read_json, write_atomic, write_json

FORMAT = 1
EVAL_SHARE = 0.1
"""Share of the documents kept for evaluation; chosen by the hash of the text, so that a document
and its copies are all on one side."""


@dataclass(frozen=True)
class Corpus:
    """Prepared tokens: `train` and `eval` are 1-D arrays, `manifest` says what they are."""

    train: NDArray[np.unsignedinteger]
    eval: NDArray[np.unsignedinteger]
    manifest: dict[str, Any]

    @property
    def tokens(self) -> Tokens:
        return Tokens(
            token_sha256=self.manifest["token_sha256"],
            tokenizer_sha256=self.manifest["tokenizer_sha256"],
        )

    @property
    def vocab_size(self) -> int:
        return self.manifest["vocab_size"]

    @property
    def eval_sha256(self) -> str:
        return self.manifest["eval_sha256"]


def cache_root() -> Path:
    """`REDLINE_CACHE`, or the user's cache directory."""
    default = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "redline"
    return Path(os.environ.get("REDLINE_CACHE", default)).expanduser()


def prepare(data: Data) -> Corpus:
    """The tokens that `data` asks for, from the cache or made now; verified against their hash.

    Raises:
        UserError: no such corpus, a damaged file, or fewer tokens than asked for.
    """
    source, tokenizer = find(data.corpus), ByteTokenizer()
    note = _note_path(data, source, tokenizer)
    note.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(note.with_suffix(".lock")):
        if note.exists() and (found := _whole(read_json(note)["token_sha256"])):
            return found
        corpus = _prepare(data, source, tokenizer)
        arrays = {"train": corpus.train, "eval": corpus.eval}
        content = save(arrays, {"manifest": json.dumps(corpus.manifest)})
        write_atomic(_token_path(corpus.manifest["token_sha256"]), content)
        write_json(note, corpus.manifest)
    return load(corpus.manifest["token_sha256"])


def prepared(data: Data) -> Tokens | None:
    """The hashes of the tokens that `data` asks for, if they were prepared before."""
    note = _note_path(data, find(data.corpus), ByteTokenizer())
    if not note.exists():
        return None
    manifest = read_json(note)
    return Tokens(
        token_sha256=manifest["token_sha256"], tokenizer_sha256=manifest["tokenizer_sha256"]
    )


def load(token_sha256: str) -> Corpus:
    """Memory-map a prepared token file.

    Raises:
        UserError: it is not in the cache of this machine, or is damaged.
    """
    path = _token_path(token_sha256)
    if not path.exists():
        raise UserError(
            f"the tokens {token_sha256[:12]} are not in {path.parent}; "
            "`redline run` of the study prepares them again"
        )
    try:
        with path.open("rb") as file:
            n_header = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(n_header))
        manifest = json.loads(header["__metadata__"]["manifest"])
        start = 8 + n_header
        arrays = {
            name: np.memmap(
                path,
                id_dtype(manifest["vocab_size"]),
                mode="r",
                offset=start + header[name]["data_offsets"][0],
                shape=tuple(header[name]["shape"]),
            )
            for name in ("train", "eval")
        }
        if manifest["token_sha256"] != token_sha256:
            raise ValueError("it holds other tokens than its name says")
    except (ValueError, KeyError, TypeError, OverflowError, MemoryError) as error:
        raise UserError(
            f"{path}: damaged token file ({error}); delete it to prepare again"
        ) from None
    return Corpus(arrays["train"], arrays["eval"], manifest)


def _whole(token_sha256: str) -> Corpus | None:
    """The cached corpus if every byte is what it was; the cache may be damaged or cleared."""
    try:
        corpus = load(token_sha256)
    except UserError:
        return None
    return corpus if _token_sha256(corpus.train, corpus.eval) == token_sha256 else None


def sha256_array(array: NDArray[Any]) -> str:
    """A hash of an array's numbers, whatever its width: little-endian 64-bit."""
    return hashlib.sha256(array.astype("<i8").tobytes()).hexdigest()


def _note_path(data: Data, source: Source, tokenizer: ByteTokenizer) -> Path:
    """Where the manifest of one preparation lies: its name says everything that went into it."""
    key = digest(
        {
            "format": FORMAT,
            "source": source.sha256,
            "tokenizer": tokenizer.sha256,
            "n_train_token": data.n_train_token,
            "n_eval_token": data.n_eval_token,
            "eval_share": EVAL_SHARE,
        }
    )
    return cache_root() / f"{key}.json"


def _token_path(token_sha256: str) -> Path:
    return cache_root() / f"{token_sha256}.safetensors"


def _token_sha256(
    train: NDArray[np.unsignedinteger], evaluation: NDArray[np.unsignedinteger]
) -> str:
    digest = hashlib.sha256()
    for part in (train, evaluation):
        digest.update(f"{part.dtype.str}:{len(part)}:".encode())
        digest.update(part.tobytes())
    return digest.hexdigest()


@dataclass
class _Side:
    """One side of the split while documents arrive: whole documents, each with its separator."""

    parts: list[NDArray[np.unsignedinteger]]
    n_token: int = 0

    def add(self, ids: NDArray[np.unsignedinteger]) -> None:
        self.parts.append(ids)
        self.n_token += len(ids)


def _prepare(data: Data, source: Source, tokenizer: ByteTokenizer) -> Corpus:
    wanted = {"train": data.n_train_token, "eval": data.n_eval_token + 1}  # the last target
    sides, n_empty = _split(source, tokenizer, wanted)
    for side, n_token in wanted.items():
        held = sides[side].n_token
        if held < n_token:
            raise UserError(
                f'data.n_{side}_token: the corpus "{data.corpus}" holds {held:,} {side} tokens and '
                f"{n_token:,} are needed; ask for fewer or use more text"
            )
    ids = {
        side: narrow(np.concatenate(sides[side].parts)[:n_token], tokenizer.vocab_size)
        for side, n_token in wanted.items()
    }
    train, evaluation = ids["train"], ids["eval"]
    manifest = {
        "format": FORMAT,
        "corpus": source.name,
        "licence": source.licence,
        "source_sha256": source.sha256,
        "tokenizer": tokenizer.name,
        "tokenizer_sha256": tokenizer.sha256,
        "vocab_size": tokenizer.vocab_size,
        "token_sha256": _token_sha256(train, evaluation),
        "eval_sha256": sha256_array(evaluation),
        "n_train_token": len(train),
        "n_eval_token": data.n_eval_token,
        "n_separator": int((train == tokenizer.separator).sum()),
        "n_document_read": sum(len(side.parts) for side in sides.values()),
        "n_document_empty": n_empty,
        "unigram_loss": unigram_loss(train, evaluation, tokenizer.vocab_size),
        "bigram_loss": bigram_loss(train, evaluation, tokenizer.vocab_size),
        "preview": tokenizer.decode(train[:200]),
    }
    return Corpus(train, evaluation, manifest)


def _split(
    source: Source, tokenizer: ByteTokenizer, wanted: dict[str, int]
) -> tuple[dict[str, _Side], int]:
    """Documents dealt to both sides until each has enough, and how many were empty."""
    sides = {"train": _Side([]), "eval": _Side([])}
    documents = source.documents()
    first, n_empty, dealt = None, 0, 0
    for text in documents:
        if not text.strip():
            n_empty += 1
            continue
        dealt += 1
        ids = np.append(tokenizer.encode(text), np.uint8(tokenizer.separator))
        first = ids if dealt == 1 else None
        sides[_side_of(text)].add(ids)
        if all(sides[side].n_token >= n_token for side, n_token in wanted.items()):
            break
    if dealt == 0:
        raise UserError(f"the corpus {source.name} holds no text")
    if first is not None:
        # A single document, such as a book, is cut: its last part is for evaluation.
        cut = round(len(first) * (1 - EVAL_SHARE))
        sides = {"train": _Side([first[:cut]], cut), "eval": _Side([first[cut:]], len(first) - cut)}
    return sides, n_empty


def _side_of(text: str) -> str:
    fraction = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
    return "eval" if fraction < EVAL_SHARE else "train"
