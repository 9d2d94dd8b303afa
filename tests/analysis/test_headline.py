import math

from redline.analysis.headline import headlines

NAN, INF = float("nan"), float("inf")
NAME = "off-2-0.01-0"


def probe(step, layer, max_logit=None, entropy=None, normalised=None, **more):
    return more | {
        "trial_id": NAME,
        "step": step,
        "layer": layer,
        "max_logit": max_logit,
        "entropy": entropy,
        "entropy_normalised": normalised,
    }


# 400 steps, warm-up 40: the early step is 8, 40 % of the warm-up is 16, its end is 40.
FULL = [
    probe(8, 1, 7.0, 2.9, 0.8),
    probe(8, 0, 1.0, 3.0, 0.9),
    probe(8, 2),
    probe(16, 0, 2.0, 2.5, 0.7),
    probe(40, 0, 3.0, 2.0, 0.6),
    probe(200, 1, 90.0, 0.2, 0.05),
    probe(400, 0, 4.0, 1.5, 0.5),
    probe(400, 1, 5.0, 1.2, 0.4),
    probe(400, 2),
    probe(200, 2, outlier_ratio=9.0, kurtosis_max=30.0),
    probe(400, 0, outlier_ratio=4.0, kurtosis_max=3.0),
]


def one(trials, probes):
    return headlines(trials, probes).row(0, named=True)


def test_each_headline_is_the_value_of_its_own_step_and_layer(sweep, probes):
    assert one(sweep({("off", 0.01): [2.0]}), probes(FULL)) == {
        "trial_id": NAME,
        "early_max_logit": 1.0,
        "warmup_40_max_logit": 2.0,
        "warmup_max_logit": 3.0,
        "running_max_logit": 90.0,
        "final_entropy": 1.2,
        "min_entropy": 0.2,
        "final_entropy_normalised": 0.4,
        "min_entropy_normalised": 0.05,
        "max_outlier_ratio": 9.0,
        "max_kurtosis": 30.0,
    }


def test_a_step_that_was_not_probed_is_null_and_no_neighbour(sweep, probes):
    neighbours = [probe(7, 0, 1.0), probe(9, 0, 1.0), probe(399, 0, 1.0, 2.0, 0.5)]
    row = one(sweep({("off", 0.01): [2.0]}), probes(neighbours))
    assert row["early_max_logit"] is None
    assert row["final_entropy"] is None
    assert row["running_max_logit"] == 1.0


def test_a_trial_that_died_has_what_it_lived_to_see(sweep, probes):
    row = one(sweep({("off", 0.01): [None]}), probes(FULL[:4]))
    assert row["early_max_logit"] == 1.0
    assert row["warmup_max_logit"] is None
    assert row["final_entropy"] is None
    assert row["min_entropy"] == 2.5


def test_a_trial_without_probes_keeps_its_row(sweep, probes):
    assert one(sweep({("off", 0.01): [2.0]}), probes())["running_max_logit"] is None


def test_a_lost_logit_is_no_small_one(sweep, probes):
    trials = sweep({("off", 0.01): [2.0]})
    assert one(trials, probes([probe(8, 0, 1.0), probe(80, 0, INF)]))["running_max_logit"] == INF
    lost = one(trials, probes([probe(8, 0, 1.0), probe(80, 0, NAN)]))
    assert math.isnan(lost["running_max_logit"])


def test_a_lost_outlier_is_no_small_one(sweep, probes):
    trials = sweep({("off", 0.01): [2.0]})
    values = [probe(8, 0, outlier_ratio=x, kurtosis_max=x) for x in (5.0, NAN)]
    row = one(trials, probes(values))
    assert math.isnan(row["max_outlier_ratio"])
    assert math.isnan(row["max_kurtosis"])


def test_a_fractional_step_is_rounded_up(sweep, probes):
    # 0.02 * 355 = 7.1, and 0.4 * 36 = 14.4 of the warm-up.
    trials = sweep({("off", 0.01): [2.0]}, train__n_step=355)
    row = one(trials, probes([probe(8, 0, 2.0), probe(15, 0, 3.0)]))
    assert (row["early_max_logit"], row["warmup_40_max_logit"]) == (2.0, 3.0)


def test_the_shortest_trial_has_its_early_step_at_one(sweep, probes):
    trials = sweep({("off", 0.01): [2.0]}, train__n_step=10)
    row = one(trials, probes([probe(1, 0, 6.0)]))
    assert row["early_max_logit"] == row["warmup_40_max_logit"] == row["warmup_max_logit"] == 6.0
