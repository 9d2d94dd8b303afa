"""Token files: what is prepared is what was asked for, hashed, and never silently wrong."""

import json
import multiprocessing as mp

import numpy as np
import polars as pl
import pytest

from redline.config.identity import Tokens
from redline.config.trial import Data
from redline.data import tokens
from redline.data.tokenizer import SEPARATOR, ByteTokenizer, id_dtype, narrow
from redline.data.tokens import cache_root, load, prepare, prepared, sha256_array
from redline.files import UserError

DOCUMENTS = [f"Story {i}. " + "The cat sat on the mat. " * (1 + i % 7) for i in range(200)]


def data(corpus, n_train=4_000, n_eval=256):
    return Data(corpus=str(corpus), tokenizer="bytes", n_train_token=n_train, n_eval_token=n_eval)


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("REDLINE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def jsonl(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in DOCUMENTS))
    return path


def test_a_corpus_is_the_same_from_every_kind_of_file(tmp_path, jsonl):
    text, parquet = tmp_path / "a.txt", tmp_path / "a.parquet"
    text.write_text("\n<|endoftext|>\n".join(DOCUMENTS))
    pl.DataFrame({"text": DOCUMENTS, "other": range(200)}).write_parquet(parquet)
    found = [prepare(data(path)) for path in (jsonl, text, parquet)]
    assert len({corpus.tokens for corpus in found}) == 1


def test_a_prepared_corpus_is_found_again_and_maps_its_file(jsonl, monkeypatch):
    assert prepared(data(jsonl)) is None
    first = prepare(data(jsonl))
    monkeypatch.setattr(tokens, "_prepare", None)
    again = prepare(data(jsonl))
    assert again.tokens == first.tokens == prepared(data(jsonl))
    assert isinstance(again.train, np.memmap)
    assert np.array_equal(load(first.tokens.token_sha256).train, first.train)
    assert (len(first.train), len(first.eval)) == (4_000, 257)


@pytest.mark.parametrize("vocab_size", [70_001, 65_537])
def test_case_d01_ids_never_wrap_in_16_bits(vocab_size):
    """transformers#2825: a cast to 16 bits changed 45 % of a 119k vocabulary without a word."""
    ids = np.array([0, vocab_size - 1], dtype=np.int64)
    assert narrow(ids, vocab_size).tolist() == ids.tolist()
    assert narrow(ids, vocab_size).dtype == np.uint32
    with pytest.raises(UserError, match=f"id {vocab_size} .* vocabulary of {vocab_size}"):
        narrow(ids + 1, vocab_size)
    assert [id_dtype(n).itemsize for n in (256, 257, 65_536)] == [1, 2, 2]


def test_case_d02_another_tokenizer_or_budget_is_another_cache_entry(jsonl, monkeypatch):
    """open-instruct#1518: the cache key left the tokenizer out and old ids were reused."""
    first = prepare(data(jsonl))
    smaller = prepare(data(jsonl, n_train=3_000))
    monkeypatch.setattr(ByteTokenizer, "sha256", "b" * 64)
    other = prepare(data(jsonl))
    assert other.manifest["tokenizer_sha256"] == "b" * 64
    assert len({corpus.tokens for corpus in (first, smaller, other)}) == 3
    assert len(list(cache_root().glob("*.json"))) >= 3


def test_case_d08_changed_text_is_another_corpus(jsonl):
    """nanoGPT#10: the hosted data had changed under the same name, and a refactor was blamed."""
    before = prepare(data(jsonl)).tokens
    jsonl.write_text(jsonl.read_text().replace("cat", "dog"))
    assert prepare(data(jsonl)).tokens != before


def test_case_d09_every_document_ends_with_one_separator(tmp_path):
    """ReaLLM-Forge#288: stories were glued together with nothing between them."""
    path = tmp_path / "ten.jsonl"
    lines = [json.dumps({"text": f"Document number {i} ends here."}) for i in range(100)]
    path.write_text("\n".join(lines))
    corpus = prepare(data(path, n_train=1_000, n_eval=100))
    text = bytes(corpus.train.tolist())
    pieces = text.split(bytes([SEPARATOR]))
    assert all(piece.startswith(b"Document") and piece.endswith(b"here.") for piece in pieces[:-1])
    assert corpus.manifest["n_separator"] == len(pieces) - 1 > 20
    assert "<|end of document|>" in corpus.manifest["preview"]


def test_case_d11_one_token_is_one_byte_of_the_text():
    """nanochat#693: bytes were counted by decoding tokens, and half a character became three."""
    text = "naïve 🙂 text"
    ids = ByteTokenizer().encode(text)
    assert len(ids) == len(text.encode("utf-8"))
    assert ByteTokenizer().decode(ids) == text
    assert SEPARATOR not in ids


def test_a_document_and_its_copies_are_on_one_side_of_the_split(tmp_path):
    path = tmp_path / "copies.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in DOCUMENTS * 3))
    corpus = prepare(data(path, n_train=9_000, n_eval=512))
    sides = [set(bytes(side.tolist()).split(b"\xff")[:-1]) for side in (corpus.train, corpus.eval)]
    assert not sides[0] & sides[1]
    assert all(sides)


def test_a_book_is_cut_and_its_end_is_for_evaluation(tmp_path):
    path = tmp_path / "book.txt"
    text = "".join(chr(97 + i % 26) for i in range(10_000))
    path.write_text(text)
    corpus = prepare(data(path, n_train=9_000, n_eval=900))
    assert bytes(corpus.train.tolist()).decode() == text[:9_000]
    assert bytes(corpus.eval.tolist()).decode() == text[9_001 : 9_001 + 901]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.txt", b"", "holds no text"),
        ("blank.jsonl", b'{"text": ""}\n{"text": "  "}\n', "holds no text"),
        ("small.txt", b"too small", r"n_train_token: .* holds 9 train tokens and 4,000 are needed"),
        ("latin.txt", "caf\xe9".encode("latin-1"), "byte 3 is not UTF-8"),
        ("cut.jsonl", b'{"text": "a"}\n{"text": "b', "line 2 is not a JSON object"),
        ("key.jsonl", b'{"txt": "a"}\n', 'line 1 is not a JSON object with a "text"'),
        ("number.jsonl", b'{"text": 5}\n', 'line 1 is not a JSON object with a "text"'),
        ("list.jsonl", b"[1]\n", 'line 1 is not a JSON object with a "text"'),
        ("half.jsonl", b'{"text": "\\ud800"}\n', "not valid text"),
        ("junk.parquet", b"PAR1 no", "not a readable Parquet file"),
        ("a.csv", b"a", r"ends in \.txt, \.jsonl, \.parquet"),
    ],
)
def test_a_bad_corpus_is_one_sentence_that_names_it(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError, match=message) as error:
        prepare(data(path))
    assert "\n" not in str(error.value)


def test_a_parquet_without_text_and_a_file_that_is_not_there_are_named(tmp_path):
    path = tmp_path / "b.parquet"
    pl.DataFrame({"body": ["a"]}).write_parquet(path)
    with pytest.raises(UserError, match=r"no text column \"text\" among \['body'\]"):
        prepare(data(path))
    with pytest.raises(UserError, match="no such file"):
        prepare(data(tmp_path / "none.txt"))


def test_a_flipped_byte_in_the_cache_is_prepared_again(jsonl):
    corpus = prepare(data(jsonl))
    path = cache_root() / f"{corpus.tokens.token_sha256}.safetensors"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    again = prepare(data(jsonl))
    assert again.tokens == corpus.tokens
    assert sha256_array(again.eval) == corpus.eval_sha256


@pytest.mark.parametrize("damage", [b"", b"\xff" * 64, b"\x08" + b"\0" * 7 + b"notjson!"])
def test_a_damaged_token_file_is_one_sentence(jsonl, damage):
    corpus = prepare(data(jsonl))
    path = cache_root() / f"{corpus.tokens.token_sha256}.safetensors"
    path.write_bytes(damage)
    with pytest.raises(UserError, match="damaged token file"):
        load(corpus.tokens.token_sha256)
    assert prepare(data(jsonl)).tokens == corpus.tokens


def test_tokens_that_are_not_here_name_the_command_that_makes_them():
    with pytest.raises(UserError, match="redline run"):
        load("0" * 64)


@pytest.mark.parametrize("name", ["../../../etc/x", "A" * 64, "0" * 63, ""])
def test_a_token_hash_from_a_store_is_a_hash_and_no_path(name):
    with pytest.raises(ValueError, match="token_sha256"):
        Tokens(token_sha256=name, tokenizer_sha256="0" * 64)


def test_a_token_file_under_another_name_is_refused(jsonl):
    corpus = prepare(data(jsonl))
    other = cache_root() / f"{'0' * 64}.safetensors"
    (cache_root() / f"{corpus.tokens.token_sha256}.safetensors").rename(other)
    with pytest.raises(UserError, match="other tokens than its name"):
        load("0" * 64)


def test_two_processes_may_prepare_at_once(jsonl):
    with mp.get_context("spawn").Pool(2) as pool:
        found = pool.map(_prepared_sha256, [str(jsonl)] * 2)
        pool.close()
        pool.join()
    assert found[0] == found[1]


def _prepared_sha256(path):
    return prepare(data(path)).tokens.token_sha256


def test_the_built_in_corpus_needs_no_file():
    corpus = prepare(data("stories", n_train=20_000, n_eval=1_024))
    assert corpus.manifest["licence"].startswith("Apache-2.0")
    assert 1.5 < corpus.manifest["bigram_loss"] < corpus.manifest["unigram_loss"] < 3.5


def test_real_text_is_prepared(shared):
    stories = prepare(
        data(shared / "data/tinystories/stories.jsonl", n_train=500_000, n_eval=8_192)
    )
    book = prepare(data(shared / "data/shakespeare/input.txt", n_train=1_000_000, n_eval=8_192))
    assert 2.1 < stories.manifest["bigram_loss"] < 2.4
    assert 2.3 < book.manifest["bigram_loss"] < 2.6
    assert book.manifest["n_separator"] == 0
