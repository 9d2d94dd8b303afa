import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.config.edit import field_paths, flatten
from redline.config.identity import LOCATORS, Tokens, canonical, digest, scientific_fields, trial_id
from redline.config.trial import QKNorm, Trial

TOKENS = Tokens(token_sha256="a" * 64, tokenizer_sha256="b" * 64)

GOLDEN = {
    "plain": ({}, "e8cd5fc408cd0652"),
    "qk_norm": ({"model.qk_norm": QKNorm(), "train.peak_lr": 3e-2, "seed": 2}, "9c1cc5ae77d79939"),
    "deep": ({"model.n_layer": 12, "model.pos": "rope", "device": "cuda"}, "7945087b31e784de"),
}
"""Name -> the changes of the explicit trial in `conftest`, and the id that it had in version 1."""

CHANGED = {
    "model.n_layer": 3,
    "model.n_head": 4,
    "model.n_embd": 128,
    "model.block_size": 32,
    "model.bias": True,
    "model.pos": "rope",
    "model.tied_head": False,
    "model.layer_norm_eps": 1e-6,
    "model.init_std": 0.01,
    "model.qk_init": "inverse_sqrt",
    "model.qk_norm": QKNorm(),
    "data.n_train_token": 999_999,
    "data.n_eval_token": 4_096,
    "train.batch_size": 8,
    "train.n_step": 401,
    "train.peak_lr": 1.0000000000000002e-3,
    "train.warmup_fraction": 0.05,
    "train.lr_floor": 0.0,
    "train.lr_floor_mode": "absolute",
    "train.weight_decay": 0.0,
    "train.weight_decay_mode": "independent",
    "train.beta1": 0.8,
    "train.beta2": 0.99,
    "train.adam_eps": 1e-9,
    "train.grad_clip": 0.5,
    "train.z_loss": 1e-4,
    "measure.eval_every": 50,
    "measure.probe_every": 20,
    "measure.n_probe_row": 8,
    "seed": 1,
    "device": "cuda",
}
"""A second value of every scientific field that has one."""

ONE_VALUE = {"protocol", "data.tokenizer", "precision"}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_ids_stay(make, name):
    changes, golden = GOLDEN[name]
    assert trial_id(make(changes), TOKENS) == golden, (
        "If this moved, every stored result is orphaned: do not update the id. A new field needs a "
        "LEGACY value, and the encoding stays as it was."
    )


@pytest.mark.parametrize("path", CHANGED)
def test_every_scientific_field_changes_the_id(make, path):
    changes: dict[str, Any] = {path: CHANGED[path]}
    if path == "train.lr_floor_mode":
        changes["train.peak_lr"] = 0.5
    base = make({key: value for key, value in changes.items() if key != path})
    assert trial_id(make(changes), TOKENS) != trial_id(base, TOKENS)


def test_case_c05_every_field_is_in_exactly_one_class(make):
    """C05: a resumed sweep half-accepted a changed config, since nothing said which fields count.

    Here every field is scientific or a locator; a new one fails until it is put into a class.
    """
    scientific = set(scientific_fields(make()))
    assert scientific | LOCATORS == set(field_paths())
    assert not scientific & LOCATORS
    assert scientific == set(CHANGED) | ONE_VALUE


def test_where_a_corpus_lies_is_not_identity_but_its_tokens_are(make):
    moved = make({"data.corpus": "/elsewhere/stories.txt"})
    assert trial_id(moved, TOKENS) == trial_id(make(), TOKENS)
    for field in Tokens.model_fields:
        other = TOKENS.model_copy(update={field: "c" * 64})
        assert trial_id(make(), other) != trial_id(make(), TOKENS)


@pytest.mark.parametrize("spelling", [0.001, "1e-3", "0.001", "1.0E-3", " 1e-3 "])
def test_spellings_of_a_learning_rate_are_one_trial(make, spelling):
    assert trial_id(make({"train.peak_lr": spelling}), TOKENS) == trial_id(make(), TOKENS)


def test_integers_and_signed_zeros_of_a_float_field_are_one_trial(make):
    ids = {trial_id(make({"train.weight_decay": zero}), TOKENS) for zero in (0, 0.0, -0.0, "-0")}
    assert len(ids) == 1


@given(st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_identity_does_not_depend_on_the_order_of_keys(make, rng: random.Random):
    trial = make({"model.qk_norm": QKNorm()})
    shuffled = _shuffled(trial.model_dump(), rng)
    assert trial_id(Trial.model_validate(shuffled), TOKENS) == trial_id(trial, TOKENS)
    assert canonical(shuffled) == canonical(trial.model_dump())


def test_a_new_field_at_its_legacy_value_keeps_old_ids(make):
    # `train.z_loss` plays a field that trials of an older version did not have.
    legacy = {"train.z_loss": 0.0}
    fields_then = scientific_fields(make())
    del fields_then["train.z_loss"]
    assert scientific_fields(make(), legacy) == fields_then
    assert trial_id(make({"train.z_loss": "-0.0"}), TOKENS, legacy) == trial_id(
        make(), TOKENS, legacy
    )


def test_a_new_field_at_another_value_is_another_trial(make):
    legacy = {"train.z_loss": 0.0}
    new = trial_id(make({"train.z_loss": 1e-4}), TOKENS, legacy)
    assert new != trial_id(make(), TOKENS, legacy)
    assert new == trial_id(make({"train.z_loss": 1e-4}), TOKENS), (
        "only the legacy value is left out"
    )


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=50, deadline=None)
def test_canonical_floats_read_back_exactly(number: float):
    assert float(canonical(number)) == number


def test_canonical_text_tells_types_apart():
    values = [1, 1.0, "1", True, None, "null", [1], ["1"], {"1": 1}]
    assert len({canonical(value) for value in values}) == len(values)


def test_a_digest_is_16_hex_digits(make):
    assert len(digest(flatten(make().model_dump()))) == 16
    assert int(digest({}), 16) >= 0


def _shuffled(table: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    keys = rng.sample(list(table), len(table))
    return {k: _shuffled(v, rng) if isinstance(v := table[k], dict) else v for k in keys}
