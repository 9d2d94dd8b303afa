from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from redline.config.edit import field_paths, flatten, put, unflatten, value_at, with_fields
from redline.config.trial import QKNorm, Trial

NAMES = st.text("abc", min_size=1, max_size=3)
TABLES = st.recursive(
    st.integers(), lambda inner: st.dictionaries(NAMES, inner, min_size=1, max_size=3), max_leaves=6
)


@given(st.dictionaries(NAMES, TABLES, max_size=3))
@settings(max_examples=50, deadline=None)
def test_unflatten_inverts_flatten(nested: dict[str, Any]):
    assert unflatten(flatten(nested)) == nested


def test_a_trial_is_rebuilt_from_its_paths(make):
    trial = make({"model.qk_norm": QKNorm(kind="l2")})
    paths = field_paths()
    rebuilt = unflatten({path: value_at(trial, path) for path in paths})
    assert Trial.model_validate(rebuilt) == trial


def test_sections_are_opened_and_components_kept_whole(make):
    assert "model" not in field_paths()
    assert "train.peak_lr" in field_paths()
    assert "model.qk_norm" in field_paths()
    assert "model.qk_norm.kind" not in field_paths()
    assert value_at(make({"model.qk_norm": {}}), "model.qk_norm") == QKNorm()


def test_put_makes_the_tables_on_the_way_and_leaves_the_others_alone():
    nested = {"train": {"n_step": 1}}
    put(nested, "train.peak_lr", 0.1)
    put(nested, "model.n_layer", 2)
    assert nested == {"train": {"n_step": 1, "peak_lr": 0.1}, "model": {"n_layer": 2}}


def test_with_fields_changes_only_what_it_names_and_validates_the_whole(make):
    changed = with_fields(make(), {"train.peak_lr": "1e-2", "model.qk_norm": QKNorm()})
    assert changed == make({"train.peak_lr": 1e-2, "model.qk_norm": QKNorm()})
    with pytest.raises(ValidationError, match="not divisible"):
        with_fields(make(), {"model.n_head": 3})
