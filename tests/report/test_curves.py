import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweeps import report, sweep

from redline.files import to_json
from redline.report.curves import DIGITS, MAX_NON_FINITE, N_BUCKET, RULE, curves, thinned
from redline.report.page import CURVES, html


def frame(values):
    return pl.DataFrame(
        {"trial_id": "a", "layer": None, "step": range(len(values)), "value": values},
        schema={
            "trial_id": pl.String,
            "layer": pl.Int64,
            "step": pl.Int64,
            "value": pl.Float64,
        },
    )


def drawn(values):
    return dict(thinned(frame(values)).select("step", "value").iter_rows())


def test_a_short_curve_is_whole():
    values = [float(n % 7) for n in range(2 * N_BUCKET)]
    assert list(drawn(values).values()) == values


def test_a_spike_of_one_step_is_seen():
    values = [1.0] * 5000
    values[1234] = 9.0
    assert drawn(values)[1234] == 9.0


def test_case_r07_every_point_drawn_is_a_stored_row_and_the_page_says_the_rule():
    """R07 (wandb#5699): a smoothed curve by an undocumented formula could not be reproduced.

    Nothing is smoothed: each point is a row of the series, to the digits shown; a NaN does not
    blank the rest; and the rule of thinning stands on the page.
    """
    measured, _ = sweep(rates=(1e-2,), n_seed=1, n_step=1000)
    spoilt = measured.series.with_columns(
        loss=pl.when(pl.col("step") == 500).then(math.nan).otherwise("loss")
    )
    raw = {(r["trial_id"], r["step"]): r["loss"] for r in spoilt.iter_rows(named=True)}
    for trial_id, found in curves(spoilt, measured.probes).items():
        loss = next(curve for curve in found if curve["measure"] == "loss")
        by_step = dict(zip(loss["steps"], loss["values"], strict=True))
        assert by_step.pop(500) == "nan"
        assert max(by_step) == 1000
        for step, value in by_step.items():
            assert value == float(f"{raw[trial_id, step]:.{DIGITS}g}")
    assert RULE in html(report(), [])


def test_case_p07_the_update_norm_that_moves_first_is_on_the_page():
    """P07 (marin#1368): the update norm doubled before the loss spiked; a look at losses missed it.

    A doubling at step 50 and a spike at step 53 are both points of the trial's panel.
    """
    measured, _ = sweep(rates=(1e-2,), n_seed=1)
    step = pl.col("step")
    series = measured.series.with_columns(
        update_norm=pl.when(step == 50).then(0.2).otherwise("update_norm"),
        loss=pl.when(step == 53).then(9.0).otherwise("loss"),
    )
    found = next(iter(curves(series, measured.probes).values()))
    points = {c["measure"]: dict(zip(c["steps"], c["values"], strict=True)) for c in found}
    assert points["update_norm"][50] == 0.2
    assert points["loss"][53] == 9.0
    shown = {measure for _, measures, _ in CURVES for measure in measures}
    assert {"update_norm", "grad_norm", "max_logit"} <= shown


def test_layers_are_curves_of_their_own():
    measured, _ = sweep(depths=(4,), rates=(1e-2,), n_seed=1)
    found = next(iter(curves(measured.series, measured.probes).values()))
    assert [c["layer"] for c in found if c["measure"] == "max_logit"] == [0, 1, 2, 3]


def test_what_was_never_measured_is_no_curve():
    measured, _ = sweep(rates=(1e-2,), n_seed=1)
    found = next(iter(curves(measured.series, measured.probes.clear()).values()))
    assert {c["measure"] for c in found} == {"loss", "eval_loss", "grad_norm", "update_norm"}


@given(
    st.lists(
        st.one_of(st.floats(-1e6, 1e6), st.sampled_from([math.nan, math.inf, -math.inf])),
        max_size=400,
    )
)
def test_thinning_keeps_extremes_ends_and_order(values):
    kept = drawn(values)
    assert list(kept) == sorted(kept)
    assert all(kept[s] == values[s] or math.isnan(values[s]) for s in kept)
    finite = [v for v in values if math.isfinite(v)]
    if finite:
        assert min(finite) in kept.values()
        assert max(finite) in kept.values()
    if values:
        assert {0, len(values) - 1} <= kept.keys()
    lost = [s for s, v in enumerate(values) if not math.isfinite(v)]
    assert set(lost[:MAX_NON_FINITE]) <= kept.keys()
    assert len(kept) <= 2 * N_BUCKET + MAX_NON_FINITE + 2


def test_two_trials_do_not_mix():
    values = np.linspace(0, 1, 1000)
    two = pl.concat([frame(values), frame(-values).with_columns(trial_id=pl.lit("b"))])
    found = {name: rows for (name,), rows in thinned(two).group_by("trial_id")}
    assert found["a"]["value"].min() == 0
    assert found["b"]["value"].max() == 0


def test_a_thousand_trials_stay_small():
    measured, _ = sweep(rates=(1e-2,), n_seed=2, n_step=4000)
    found = curves(measured.series, measured.probes)
    assert len(to_json(found)) / len(found) == pytest.approx(6000, abs=3000)
