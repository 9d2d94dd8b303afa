from math import inf, log10

import pytest

from redline.analysis.evidence import evidence
from redline.analysis.grid import expected_trials
from redline.analysis.outcome import UNSTABLE
from redline.analysis.sensitivity import measure, seed_differences
from redline.analysis.threshold import seed_thresholds, tiers

RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
BASE = dict(zip(RATES, (2.4, 2.3, 2.2, 2.0, 2.1, 2.15, 2.2), strict=True))
SPREAD = (0.0, 0.01, 0.03)


def curves(gap, *, spread=SPREAD):
    """Both arms on one base; `gap` is rate -> off - on, which grows by `spread` with the seed."""
    on = {rate: [loss + 0.001 * seed for seed in range(3)] for rate, loss in BASE.items()}
    off = {
        rate: [
            loss + gap.get(rate, 0.0) + (s if gap.get(rate) else 0.0)
            for loss, s in zip(on[rate], spread, strict=True)
        ]
        for rate in RATES
    }
    return {"off": off, "on": on}


@pytest.fixture
def gather(judged, arms, analysis):
    """Losses of the arms, one table for each depth -> the evidence."""

    def run(table, registered=None):
        sensitivity = measure(table, expected_trials(table, table), registered)
        return evidence(
            table,
            seed_thresholds(table, {UNSTABLE: tiers(analysis)[UNSTABLE]}),
            seed_differences(sensitivity),
            registered,
            analysis,
        )

    return run


@pytest.fixture
def sweep_of(judged, arms):
    return lambda gap, **options: judged(arms(**curves(gap, **options)))


def test_the_windows_stand_on_the_best_lr_of_the_plain_arm(sweep_of, gather):
    """Best at 0.003: low is 0.0003 to 0.0015, high is 0.006 to 0.1."""
    gap = {1e-4: 9.0, 3e-4: 0.02, 1e-3: 0.04, 1e-2: 0.1, 3e-2: 0.2, 1e-1: 0.25}
    (one,) = gather(sweep_of({**gap, 1e-4: 0.5}))
    assert one.low.by_seed == pytest.approx({0: 0.03, 1: 0.04, 2: 0.06})
    mean = (0.1 + 0.2 + 0.25) / 3
    assert one.high.by_seed == pytest.approx({0: mean, 1: mean + 0.01, 2: mean + 0.03})
    assert (one.low.lacks, one.high.lacks) == ("", "")


def test_a_rate_at_the_very_end_of_a_window_is_in_it(judged, arms, gather):
    """2 x 0.003 is 0.006, though not in binary."""
    losses = {"off": {}, "on": {}}
    for arm, off in (("off", 0.2), ("on", 0.0)):
        for rate, loss in ((1.5e-3, 2.2), (3e-3, 2.0), (6e-3, 2.1)):
            losses[arm][rate] = [loss + off * (rate != 3e-3) + 0.001 * s for s in range(3)]
    (one,) = gather(judged(arms(**losses)))
    assert list(one.low.by_seed) == [0, 1, 2]
    assert list(one.high.by_seed) == [0, 1, 2]


def test_the_high_window_ends_where_the_arm_is_no_longer_stable(judged, arms, gather):
    table = curves({1e-2: 0.1, 3e-2: 0.2})
    table["on"][1e-1] = [None, None, None]
    table["off"][1e-1] = [2.1, 2.1, 2.1]
    (one,) = gather(judged(arms(**table)))
    assert one.high.by_seed[0] == pytest.approx(0.15)


def test_a_window_without_rates_says_which_it_lacks(judged, arms, gather):
    losses = {rate: [2.0 + 0.1 * k, 2.01 + 0.1 * k] for k, rate in enumerate((1e-3, 3e-3))}
    (one,) = gather(judged(arms(off=losses, on=losses)))
    assert one.low.by_seed == {}
    assert one.low.lacks.startswith("peak LR between 0.0001 and 0.0005")


def test_refined_points_move_no_hypothesis(sweep_of, gather):
    gap = {3e-4: 0.02, 1e-3: 0.04, 1e-2: 0.1, 3e-2: 0.2, 1e-1: 0.25}
    registered = [rate for rate in RATES if rate != 3e-2]
    (one,) = gather(sweep_of(gap), registered)
    assert one.high.by_seed[0] == pytest.approx((0.1 + 0.25) / 2)


def test_a_missing_trial_takes_its_seed_out_of_the_window_alone(sweep_of, gather):
    table = sweep_of({1e-3: 0.04, 1e-2: 0.1})
    hole = (table["seed"] == 1) & (table["peak_lr"] == 1e-3) & (table["arm"] == "off")
    (one,) = gather(table.filter(~hole))
    assert list(one.low.by_seed) == [0, 2]
    assert list(one.high.by_seed) == [0, 1, 2]
    assert list(one.sensitivity) == [0, 2]


def test_the_ratio_is_as_wide_as_both_intervals(judged, arms, gather):
    """off fails above 0.003, on above 0.03: between a half and one and a half decade apart."""
    fails = {rate: [5.0] * 3 for rate in RATES}
    stable = {rate: [loss + 0.001 * s for s in range(3)] for rate, loss in BASE.items()}
    off = {rate: (stable if rate <= 3e-3 else fails)[rate] for rate in RATES}
    on = {rate: (stable if rate <= 3e-2 else fails)[rate] for rate in RATES}
    (one,) = gather(judged(arms(off=off, on=on)))
    low, high = log10(3e-2 / 1e-2), log10(1e-1 / 3e-3)
    assert one.ratio == {seed: pytest.approx((low, high)) for seed in range(3)}
    (never,) = gather(judged(arms(off=off, on=stable)))
    assert never.ratio[0] == (pytest.approx(log10(1e-1 / 1e-2)), inf)
    assert never.span == pytest.approx(3)


def test_a_seed_is_the_mean_over_depths_and_must_be_in_all_of_them(row, frame, findings):
    gap = {2: {1e-3: 0.02}, 4: {1e-3: 0.08}}
    rows = [
        row(
            BASE[rate] + 0.01 * seed + (gap[n].get(rate, 0.0) if arm == "off" else 0.0),
            arm=arm,
            seed=seed,
            model__n_layer=n,
            train__peak_lr=rate,
        )
        for arm in ("off", "on")
        for n in (2, 4)
        for rate in RATES
        for seed in range(3)
        if not (n == 4 and seed == 2)
    ]
    found = findings(frame(rows))
    (low, _) = next(h.parts for h in found.hypotheses if h.name == "H1")
    # Half of the low window, 0.0003 and 0.001, has the gap: 0.01 and 0.04 at the two depths.
    assert low.estimate == pytest.approx(0.025)
    assert low.n == 2


def test_crossings_are_read_up_to_the_end_of_the_range_and_from_the_best_lr(sweep_of, gather):
    (one,) = gather(sweep_of({1e-2: 0.05, 3e-2: 0.15, 1e-1: 0.2}, spread=(0.0, 0.0, 0.0)))
    assert [c.at for c in one.crossings] == pytest.approx([log10(1e-2) + log10(3) / 2] * 3)
    shift = log10(3e-3)
    assert [c.at for c in one.relative] == pytest.approx([c.at - shift for c in one.crossings])
