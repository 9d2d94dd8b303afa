import polars as pl
import pytest

from redline.analysis.cautions import cautions

FINE = {
    ("off", 0.001): [2.21, 2.23],
    ("on", 0.001): [2.20, 2.24],
    ("off", 0.01): [2.01, 2.03],
    ("on", 0.01): [2.00, 2.04],
}


@pytest.fixture
def said(findings):
    return lambda trials, **options: cautions(findings(trials, **options))


def test_a_sweep_without_oddities_has_no_cautions(sweep, said):
    assert said(sweep(FINE)) == []


def test_case_t26_two_seeds_with_one_loss_are_pointed_at(sweep, said):
    """T26 (huggingface/transformers#31818, huggingface/trl#1810): a seed option did nothing.

    Two seeds that end at one loss to the last digit are named with their cell; a pair of arms or of
    rates that ends at one loss is no sign of it, and neither are two trials that diverged.
    """
    (caution,) = said(sweep(FINE | {("on", 0.01): [2.0, 2.0]}))
    assert caution == (
        "Seeds 0 and 1 of on, n_layer 2, peak LR 0.01 end at one loss to the last digit: "
        "does the seed reach the initial weights and the data?"
    )
    assert said(sweep(FINE | {("on", 0.01): [2.01, 2.03]})) == []
    assert said(sweep(FINE | {("on", 0.01): [None, None]})) == []


def test_case_t26_several_groups_of_equal_seeds_are_counted(sweep, said):
    """T26: where every cell has them, one line says so."""
    (caution,) = said(sweep({cell: [2.0, 2.0] for cell in FINE}))
    assert "and so do 3 other groups" in caution


def test_case_a11_one_seed_is_said_before_all_else(sweep, said):
    """A11 (wandb/senpai#1722): a conclusion from one run."""
    one = said(sweep({cell: of_seed[:1] for cell, of_seed in FINE.items()}))
    assert one == ["One seed in every cell: all that follows is indicative."]


@pytest.mark.parametrize("name", ["token_sha256", "tokenizer_sha256", "device", "precision"])
def test_case_d08_case_a12_case_g06_what_is_never_pooled_is_said(sweep, said, name):
    """D08, A12, G06: another text, tokenizer, device or precision is another experiment."""
    half = pl.col("seed") == 1
    trials = sweep(FINE).with_columns(
        pl.when(half).then(pl.lit("other")).otherwise(name).alias(name)
    )
    assert f"The trials differ in {name}: they are shown apart" in said(trials)[0]


def test_a_hole_is_named_by_its_key(sweep, said):
    design = sweep(FINE)
    (caution,) = said(design.slice(1), design=design)
    assert caution == (
        "7 of 8 trials have a result. Missing: off, n_layer 2, peak LR 0.001, seed 0."
    )


def test_many_holes_are_counted_and_eight_are_named(sweep, said):
    design = sweep(FINE | {("on", 0.1): [2.3, 2.31], ("off", 0.1): [2.3, 2.32]})
    (caution,) = said(design.tail(1), design=design)[1:]
    assert caution.count("n_layer") == 8
    assert caution.endswith(" and 3 more.")


def test_exact_copies_are_counted(sweep, said):
    trials = sweep(FINE)
    copies = pl.concat([trials, trials.head(3)])
    assert said(copies) == ["3 rows are exact copies of others and count once."]


def test_rates_that_are_nearly_one_are_pointed_at(sweep, said):
    # 0.0095 is 0.022 decades from 0.01, and 0.0092 is 0.036.
    assert (
        "Peak LRs that are nearly the same count as two, and pair with nothing: 0.0095 and"
        in (said(sweep(FINE | {("off", 0.0095): [2.05, 2.06], ("on", 0.0095): [2.05, 2.07]}))[-1])
    )
    assert said(sweep(FINE | {("off", 0.0092): [2.05, 2.06], ("on", 0.0092): [2.05, 2.07]})) == []
