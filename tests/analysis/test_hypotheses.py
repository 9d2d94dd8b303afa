from dataclasses import replace
from math import inf, log10

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_paired

from redline.analysis.claims import h1
from redline.analysis.evidence import Evidence, Window
from redline.analysis.hypotheses import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    as_table,
    holm,
    hypotheses,
)
from redline.analysis.slope import Crossing

LOW = (0.00, 0.01, -0.01, 0.005, 0.0, 0.01)
HIGH = (0.5, 0.55, 0.6, 0.5, 0.52, 0.58)
SENSITIVITY = (0.2, 0.22, 0.25, 0.21, 0.2, 0.23)


def seeds(values, n=6):
    return dict(enumerate(values[:n]))


def crossings(trend, n=6, depths=(2, 4, 8)):
    found = []
    for seed in range(n):
        for k, n_layer in enumerate(depths):
            at = -1.0 + trend * k + 0.02 * ((seed * 7 + k * 3) % 5 - 2)
            found.append(Crossing(seed, n_layer, at - 0.05, at + 0.05, at))
    return tuple(found)


def make(n=6, **changes):
    """Evidence that supports all three, of `n` seeds."""
    base = Evidence(
        control="",
        arm="on",
        low=Window(seeds(LOW, n), ""),
        high=Window(seeds(HIGH, n), ""),
        ratio=dict.fromkeys(range(n), (0.5, 1.5)),
        span=3.0,
        sensitivity=seeds(SENSITIVITY, n),
        crossings=crossings(-0.3, n),
        relative=crossings(-0.1, n),
    )
    return replace(base, **changes)


@pytest.fixture
def decide(analysis):
    """Evidence -> name -> hypothesis."""
    return lambda one: {h.name: h for h in hypotheses([one], analysis)}


def test_clear_evidence_supports_all_three(decide):
    found = decide(make())
    assert {name: h.verdict for name, h in found.items()} == dict.fromkeys(found, SUPPORTED)
    assert all(h.would_decide == "" for h in found.values())


@pytest.mark.parametrize("n", [0, 1, 2])
def test_two_seeds_or_fewer_decide_nothing(decide, n):
    for h in decide(make(n)).values():
        assert h.verdict == UNDECIDED
        assert h.why
        assert h.would_decide


@given(st.lists(st.floats(-0.3, 0.3), min_size=3, max_size=8))
def test_negligible_at_low_lr_is_the_paired_tost_of_statsmodels(analysis, values):
    """Both sides are asked: the p of the intersection is the larger one."""
    on = np.linspace(2, 2.1, len(values))
    off = on + np.array(values)
    if np.ptp(values) < 1e-6:
        return
    part = h1(make(low=Window(dict(enumerate(values)), "")), analysis).parts[0]
    expected, *_ = ttost_paired(off, on, -0.1, 0.05)
    assert part.p == pytest.approx(expected, abs=1e-9)


@settings(max_examples=10)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_is_that_of_statsmodels(p):
    assert holm(p) == pytest.approx(list(multipletests(p, method="holm")[1]))


def test_the_p_of_a_hypothesis_is_the_largest_of_its_parts(decide):
    h = decide(make())["H1"]
    assert h.p == max(part.p for part in h.parts)
    expected = stats.ttest_1samp(HIGH, 0.1, alternative="greater").pvalue
    assert h.parts[1].p == pytest.approx(expected)


def test_one_part_alone_supports_nothing(decide):
    gap = Window(seeds(tuple(0.2 + v for v in LOW)), "")
    assert decide(make(low=gap))["H1"].verdict == CONTRADICTED
    none = Window(seeds(tuple(v - 0.45 for v in HIGH)), "")
    assert decide(make(high=none))["H1"].verdict != SUPPORTED
    assert decide(make(sensitivity=seeds((0.2, -0.2, 0.1, -0.1, 0.0, 0.01))))["H2"].verdict == (
        UNDECIDED
    )
    same = dict.fromkeys(range(6), (-0.5, 0.5))
    assert decide(make(ratio=same))["H2"].verdict == UNDECIDED


def test_what_lies_on_the_wrong_side_contradicts(decide):
    worse = seeds(tuple(-v for v in SENSITIVITY))
    assert decide(make(sensitivity=worse))["H2"].verdict == CONTRADICTED
    lower = dict.fromkeys(range(6), (-1.5, -0.5))
    assert decide(make(ratio=lower))["H2"].verdict == CONTRADICTED
    small = {seed: (0.001 * seed - 0.01, 0.01 + 0.001 * seed) for seed in range(6)}
    h = decide(make(ratio=small))["H2"]
    assert h.parts[0].upper < log10(1.1)
    assert h.verdict == CONTRADICTED
    weak = Window(seeds((0.01, 0.02, 0.0, 0.01, 0.02, 0.01)), "")
    assert decide(make(high=weak))["H1"].verdict == CONTRADICTED


def test_h3_is_contradicted_by_a_rise_and_by_nothing_at_all(decide):
    assert decide(make(crossings=crossings(0.3)))["H3"].verdict == CONTRADICTED
    flat = tuple(
        Crossing(seed, n, -1.002, -0.998, -1.0 + 1e-4 * ((seed + n) % 3))
        for seed in range(10)
        for n in (2, 4, 8)
    )
    h = decide(make(crossings=flat))["H3"]
    assert -0.05 < h.parts[0].lower < h.parts[0].upper < 0.05
    assert h.verdict == CONTRADICTED


def test_an_arm_that_never_fails_leaves_a_lower_limit_only(decide):
    part = decide(make(ratio=dict.fromkeys(range(6), (0.5, inf))))["H2"].parts[0]
    assert part.estimate is None
    assert part.upper is None
    assert part.lower == pytest.approx(0.5, abs=0.2)
    assert ">=" in str(part)


def test_arms_that_both_never_fail_have_no_ratio(decide):
    part = decide(make(ratio=dict.fromkeys(range(6), (-inf, inf))))["H2"].parts[0]
    assert (part.estimate, part.lower, part.upper) == (None, None, None)
    assert part.p == pytest.approx(0.5, abs=0.01)


def test_seeds_that_do_not_differ_test_nothing(decide):
    h = decide(make(low=Window(dict.fromkeys(range(6), 0.01), "")))["H1"]
    assert h.verdict == UNDECIDED
    assert "do not differ" in h.why


def test_what_is_missing_is_what_would_decide(decide):
    lacking = make(high=Window({}, "peak LR between 0.02 and 0.1 at which the arm is stable"))
    h = decide(lacking)["H1"]
    assert h.why == "no peak LR between 0.02 and 0.1 at which the arm is stable"
    assert h.would_decide == "a peak LR between 0.02 and 0.1 at which the arm is stable"
    one_depth = make(crossings=crossings(-0.3, depths=(2,)))
    assert decide(one_depth)["H3"].would_decide == "a second depth"
    alike = decide(make(ratio=dict.fromkeys(range(6), (-0.5, 0.5))))["H2"]
    assert "denser grid" in alike.would_decide


def test_a_wide_spread_asks_for_seeds(decide):
    wide = Window(seeds((0.09, -0.08, 0.02, 0.1, -0.09, 0.05)), "")
    h = decide(make(low=wide))["H1"]
    assert h.verdict == UNDECIDED
    assert h.would_decide.startswith("about ")
    assert int(h.would_decide.split()[1]) > 6


def test_a_verdict_of_few_seeds_that_hangs_on_the_prior_is_marked(decide):
    """Three seeds just apart: half of the prior's spread supports, twice of it does not."""
    marked = [
        decide(make(3, ratio=dict.fromkeys(range(3), (edge, edge + 1))))["H2"]
        for edge in np.linspace(-0.1, 0.1, 21)
    ]
    assert any(h.is_prior_dependent for h in marked)
    assert not all(h.is_prior_dependent for h in marked)
    assert "prior-dependent" in next(h.standing for h in marked if h.is_prior_dependent)
    full = [
        decide(make(6, ratio=dict.fromkeys(range(6), (edge, edge + 1))))["H2"]
        for edge in np.linspace(-0.1, 0.1, 21)
    ]
    assert not any(h.is_prior_dependent for h in full)


def test_arms_are_judged_alone(analysis):
    """Holm runs over the three hypotheses of an arm, not over all arms."""
    first, second = make(), make(arm="l2", low=Window(seeds(tuple(0.2 + v for v in LOW)), ""))
    both = hypotheses([first, second], analysis)
    assert both[:3] == hypotheses([first], analysis)
    assert both[3:] == hypotheses([second], analysis)


def test_the_table_has_a_row_for_each_number(decide, analysis):
    found = hypotheses([make()], analysis)
    table = as_table(found)
    assert table.height == sum(len(h.parts) + len(h.beside) for h in found)
    assert table.filter(hypothesis="H1")["verdict"].to_list() == [SUPPORTED] * 2
    assert as_table([]).height == 0
    assert hypotheses([], analysis) == ()
