import pytest

from redline.config.edit import with_fields
from redline.config.trial import QKNorm
from redline.study.expand import expand
from redline.study.extension import extension
from redline.study.spec import load

BASE = """
title = "base"
protocol = "nanogpt"
[axes]
peak_lr = [1e-3, 1e-2]
n_layer = [2]
seed = [0, 1]
qk_norm = ["off", "on"]
"""


@pytest.fixture
def extended(tmp_path):
    """A study's text, and further trials made of its own -> old, added and new trials."""

    def run(text, further):
        path = tmp_path / "base.toml"
        path.write_text(text)
        study = load(path).pinned("cpu")
        old = expand(study, "cpu")
        added = further(old)
        next_path = tmp_path / "next.toml"
        next_path.write_text(extension(study, str(path), added))
        return old, added, expand(load(next_path), "cpu")

    return run


def product_of(like, **axes):
    """Trials like one, for every combination of seed, rate and arm that is named."""
    return [
        with_fields(like, {"seed": seed, "train.peak_lr": rate, "model.qk_norm": arm} | changes)
        for seed in axes["seeds"]
        for rate in axes["rates"]
        for arm in axes["arms"]
        for changes in axes.get("changes", [{}])
    ]


@pytest.mark.parametrize(
    "changes",
    [{}, {"model.n_layer": 8}, {"model.n_embd": 128, "train.n_step": 800}, {"train.z_loss": 1e-5}],
    ids=str,
)
def test_an_extended_study_has_the_old_trials_and_exactly_the_added_ones(extended, changes):
    def further(old):
        axes = {"seeds": [0, 7], "rates": [3e-3], "arms": [None, QKNorm()]}
        return product_of(old[0], changes=[changes], **axes)

    old, added, new = extended(BASE, further)
    assert set(new) == {*old, *added}
    assert len(new) == len(old) + len(added)


@pytest.mark.parametrize("arm", [QKNorm(kind="l2"), QKNorm(gain="frozen", eps=1e-5)], ids=str)
def test_an_arm_with_options_is_spelt_in_full(extended, arm):
    text = BASE.replace('"on"', f'{{ kind = "{arm.kind}", gain = "{arm.gain}", eps = {arm.eps} }}')

    def further(old):
        return product_of(old[0], seeds=[2], rates=[1e-3], arms=[None, arm])

    old, added, new = extended(text, further)
    assert set(new) == {*old, *added}


def test_variations_around_the_base_are_not_crossed_with_what_is_added(extended):
    text = BASE + '[around_base]\npos = ["rope"]\n'

    def further(old):
        return product_of(old[0], seeds=[9], rates=[1e-3], arms=[None, QKNorm()])

    old, added, new = extended(text, further)
    assert set(new) == {*old, *added}


def test_a_variation_can_be_extended_itself(extended):
    text = BASE + '[around_base]\npos = ["rope"]\n'

    def further(old):
        (like, *_) = [trial for trial in old if trial.model.pos == "rope"]
        return product_of(like, seeds=[9], rates=[1e-3], arms=[None, QKNorm()])

    old, added, new = extended(text, further)
    assert {trial.model.pos for trial in added} == {"rope"}
    assert set(new) == {*old, *added}


def test_a_study_can_be_extended_again_and_its_title_stays_within_the_limit(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(BASE.replace('"base"', f'"{"x" * 80}"'))
    for index in range(3):
        study = load(path).pinned("cpu")
        (trial, *_) = expand(study, "cpu")
        path = tmp_path / f"{index}.toml"
        added = [with_fields(trial, {"seed": 5 + index})]
        path.write_text(extension(study, study.source, added))
    assert load(path).title == "x" * 74 + ", next"
    assert {trial.seed for trial in expand(load(path), "cpu")} == {0, 1, 5, 6, 7}


def test_a_title_with_quotes_and_signs_is_text(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(BASE.replace('"base"', "'a \"b\" \\ é 漢'"))
    study = load(path).pinned("cpu")
    (tmp_path / "b.toml").write_text(extension(study, str(path), expand(study, "cpu")), "utf-8")
    assert load(tmp_path / "b.toml").title == 'a "b" \\ é 漢, next'
