"""Many trials as one program: the numbers of each alone, whatever its neighbours do."""

import math

import numpy as np
import pytest
import torch

from redline.config.trial import QKNorm
from redline.data.tokens import Corpus
from redline.files import to_json
from redline.model.init import build
from redline.train import loop, stack
from redline.train.stack import halves, structure, train_stack


class Listed:
    """A recorder of lists, with the same promises as the store's."""

    def __init__(self, *, fatal=None):
        self.rows, self.probes, self.saved, self.fatal = [], [], [], fatal

    def step(self, row):
        if row["step"] == self.fatal:
            raise KilledError
        self.rows.append(row)

    def probe(self, row):
        self.probes.append(row)

    def save(self, step, checkpoint):
        self.saved.append((step, checkpoint))

    def checkpoints(self):
        return (content for _, content in reversed(self.saved[-2:]))

    def rewind(self, step):
        self.rows = [row for row in self.rows if row["step"] <= step]
        self.probes = [row for row in self.probes if row["step"] <= step]


class KilledError(Exception):
    pass


@pytest.fixture
def corpus():
    rng = np.random.default_rng(0)
    ids = (np.arange(20_000) * 7 % 50 + rng.integers(0, 3, 20_000)).astype(np.uint8)
    return Corpus(ids, ids[:513].copy(), {"vocab_size": 256, "eval_sha256": "e"})


@pytest.fixture
def in_float64(monkeypatch):
    """Both loops train in double precision, where nothing but an error separates them."""
    for module in (loop, stack):
        monkeypatch.setattr(module, "build", lambda *args: build(*args).double())


def together(trials, corpus, recorders=None, every_s=1e9):
    """Results in the order of the trials, and their recorders."""
    recorders = recorders or [Listed() for _ in trials]
    ended = dict(train_stack(trials, corpus, recorders, every_s))
    assert sorted(ended) == list(range(len(trials)))
    return [ended[index] for index in range(len(trials))], recorders


def alone(trial, corpus):
    recorder = Listed()
    return loop.train(trial, corpus, recorder, 1e9), recorder


def text(result, recorder):
    return to_json([result, recorder.rows, recorder.probes])


def losses(recorder):
    return [row["loss"] for row in recorder.rows if "loss" in row]


def test_fifty_steps_in_float64_are_those_of_the_plain_loop(make_trial, corpus, in_float64):
    trials = [
        make_trial(seed=seed, train__peak_lr=rate, train__n_step=50)
        for seed, rate in ((0, 3e-4), (1, 1e-3), (2, 3e-3))
    ]
    results, recorders = together(trials, corpus)
    for trial, result, recorder in zip(trials, results, recorders, strict=True):
        plain, expected = alone(trial, corpus)
        assert losses(recorder) == pytest.approx(losses(expected), abs=1e-10)
        assert result["final_loss"] == pytest.approx(plain["final_loss"], abs=1e-10)
        for ours, theirs in zip(recorder.rows, expected.rows, strict=True):
            assert ours.keys() == theirs.keys()
            assert ours == pytest.approx(theirs, abs=1e-8)
        hashes = ("init_sha256", "batch_sha256", "eval_sha256", "steps_done", "non_finite")
        assert {k: result[k] for k in hashes} == {k: plain[k] for k in hashes}


def test_what_a_run_has_for_itself_may_differ_within_a_stack(make_trial, corpus, in_float64):
    """Decay, its mode, clip, warm-up, floor, z-loss and initial scale, each against the loop."""
    own = [
        {"train__weight_decay": 0.0},
        {"train__weight_decay": 1e-4, "train__weight_decay_mode": "independent"},
        {"train__grad_clip": 0.05},
        {"train__z_loss": 1e-2},
        {"train__warmup_fraction": 0.5, "train__lr_floor": 0.0},
        {"model__qk_init": "inverse_sqrt"},
    ]
    trials = [make_trial(train__peak_lr=1e-3, **changes) for changes in own]
    assert len({structure(trial) for trial in trials}) == 1
    _, recorders = together(trials, corpus)
    found = [losses(recorder) for recorder in recorders]
    assert len({tuple(of_run) for of_run in found}) == len(trials)
    for trial, of_run in zip(trials, found, strict=True):
        assert of_run == pytest.approx(losses(alone(trial, corpus)[1]), abs=1e-10)


@pytest.mark.parametrize("arm", [None, QKNorm()], ids=["off", "on"])
def test_a_run_has_the_same_bits_in_every_company(make_trial, corpus, arm):
    """Of 1 to 8 runs, in any place, beside one that dies and one at a rate of 1e30."""
    trial = make_trial(model__qk_norm=arm, seed=3, train__peak_lr=1e-2)
    others = [
        make_trial(model__qk_norm=arm, seed=seed, train__peak_lr=rate)
        for seed, rate in enumerate((1e30, 1e-3, 1e25, 1e-1, 3e-3, 1e-2, 3e-2))
    ]
    expected = None
    for n_other in (0, 1, 2, 3, 5, 7):
        for place in {0, n_other // 2, n_other}:
            company = [*others[:place], trial, *others[place:n_other]]
            results, recorders = together(company, corpus)
            seen = text(results[place], recorders[place])
            expected = expected or seen
            assert seen == expected, (n_other, place)
            if n_other:
                assert any(result["non_finite"] for result in results)


def test_a_run_that_dies_is_recorded_as_the_plain_loop_does(make_trial, corpus):
    dying = make_trial(train__peak_lr=1e30)
    trials = [make_trial(), dying, make_trial(seed=1)]
    results, recorders = together(trials, corpus)
    plain, expected = alone(dying, corpus)
    assert plain["non_finite"]
    for key in ("non_finite", "non_finite_step", "steps_done", "final_loss"):
        assert results[1][key] == plain[key]
    assert [row.keys() for row in recorders[1].rows] == [row.keys() for row in expected.rows]
    assert [result["non_finite"] for result in results] == [None, plain["non_finite"], None]


def test_a_run_that_is_lost_before_its_first_step_ends_there(make_trial, corpus, monkeypatch):
    def planted(model, vocab, seed):
        decoder = build(model, vocab, seed)
        if seed == 7:
            decoder.token.weight.data[0, 0] = math.inf
        return decoder

    for module in (loop, stack):
        monkeypatch.setattr(module, "build", planted)
    trials = [make_trial(seed=0), make_trial(seed=7)]
    results, recorders = together(trials, corpus)
    plain, expected = alone(trials[1], corpus)
    assert to_json(results[1]) == to_json(plain)
    assert len(recorders[1].rows) == len(expected.rows) == 1
    assert results[0]["non_finite"] is None
    assert len(recorders[0].rows) == 21


def test_a_result_comes_as_soon_as_its_run_has_ended(make_trial, corpus):
    trials = [make_trial(), make_trial(train__peak_lr=1e30)]
    recorders = [Listed(), Listed()]
    ended = train_stack(trials, corpus, recorders)
    index, result = next(ended)
    assert index == 1
    assert len(recorders[0].rows) == result["non_finite_step"] + 1
    assert [index for index, _ in ended] == [0]


@pytest.mark.parametrize("fatal", [1, 9, 20])
def test_a_killed_stack_continues_with_the_same_bits(make_trial, corpus, fatal):
    trials = [make_trial(seed=seed, train__peak_lr=1e-2) for seed in range(3)]
    straight = together(trials, corpus)
    recorders = [Listed(), Listed(fatal=fatal), Listed()]
    with pytest.raises(KilledError):
        together(trials, corpus, recorders, every_s=-1.0)
    recorders[1].fatal = None
    again = together(trials, corpus, recorders, every_s=-1.0)
    for index in range(3):
        assert text(again[0][index], again[1][index]) == text(
            straight[0][index], straight[1][index]
        )


def test_a_half_finished_stack_continues_without_the_run_that_has_ended(make_trial, corpus):
    """The dead one is finished in the store: the worker gives out what is left."""
    trials = [make_trial(seed=0), make_trial(train__peak_lr=1e30), make_trial(seed=2)]
    straight = together(trials, corpus)
    recorders = [Listed(), Listed(), Listed(fatal=15)]
    ended = []
    with pytest.raises(KilledError):
        ended.extend(train_stack(trials, corpus, recorders, -1.0))
    recorders[2].fatal = None
    left = [0, 2]
    results, _ = together([trials[i] for i in left], corpus, [recorders[i] for i in left])
    for result, index in zip(results, left, strict=True):
        assert text(result, recorders[index]) == text(straight[0][index], straight[1][index])


def test_runs_that_were_saved_at_different_steps_continue_from_the_last_they_share(
    make_trial, corpus
):
    """A kill between two checkpoints leaves one run a step ahead of the other."""
    trials = [make_trial(seed=seed) for seed in range(2)]
    straight = together(trials, corpus)
    recorders = [Listed(), Listed()]
    together(trials, corpus, recorders, every_s=-1.0)
    recorders[1].saved.pop()
    for recorder in recorders:
        recorder.saved = recorder.saved[-2:]
    steps = [{step for step, _ in recorder.saved} for recorder in recorders]
    assert steps[0] != steps[1]
    again = together(trials, corpus, recorders)
    for index in range(2):
        assert text(again[0][index], again[1][index]) == text(
            straight[0][index], straight[1][index]
        )


def test_a_damaged_checkpoint_begins_anew(make_trial, corpus, capsys):
    trials = [make_trial(seed=seed) for seed in range(2)]
    straight = together(trials, corpus)
    recorders = [Listed(), Listed()]
    recorders[0].saved = [(5, b"junk")]
    again = together(trials, corpus, recorders)
    assert "damaged checkpoint" in capsys.readouterr().out
    assert text(again[0][0], again[1][0]) == text(straight[0][0], straight[1][0])


def test_probes_and_evaluations_at_equal_weights_are_those_of_the_loop(make_trial, corpus):
    trials = [make_trial(seed=seed, model__qk_norm=QKNorm()) for seed in range(3)]
    results, recorders = together(trials, corpus)
    for trial, result, recorder in zip(trials, results, recorders, strict=True):
        plain, expected = alone(trial, corpus)
        assert recorder.probes[0] == expected.probes[0]
        assert [row["step"] for row in recorder.probes] == [p["step"] for p in expected.probes]
        assert result["init_loss"] == pytest.approx(plain["init_loss"], abs=1e-6)


def test_probing_moves_no_bit_of_a_stack(make_trial, corpus):
    often, seldom = (
        make_trial(measure__probe_every=every, train__peak_lr=1e-2) for every in (1, 20)
    )
    found = [losses(together([trial, trial], corpus)[1][0]) for trial in (often, seldom)]
    assert found[0] == found[1]


def test_arms_and_shapes_share_no_stack(make_trial, corpus):
    base = make_trial()
    for other in (
        make_trial(model__qk_norm=QKNorm()),
        make_trial(model__n_layer=3),
        make_trial(train__n_step=10),
    ):
        assert structure(base) != structure(other)
        with pytest.raises(ValueError, match="different structure"):
            next(train_stack([base, other], corpus, [Listed(), Listed()]))
    assert structure(base) == structure(make_trial(seed=5, train__peak_lr=0.3))


def test_a_stack_that_does_not_fit_is_halved(make_trial):
    trials = [make_trial(seed=seed) for seed in range(5)]
    first, second = halves(trials)
    assert [*first, *second] == trials
    assert (len(first), len(second)) == (2, 3)
    with pytest.raises(ValueError, match="alone"):
        halves(trials[:1])


def test_gradients_do_not_live_on(make_trial, corpus):
    """A stack's memory after a step is that of its weights and moments: no graph is kept."""
    made = stack.Stack([make_trial(), make_trial(seed=1)], corpus, [Listed(), Listed()], "cpu")
    made.update(1)
    assert all(p.grad is None and p.is_leaf for p in made.module.parameters.values())
    assert all(not matrix.requires_grad for matrix in made.optimiser.state.values())
    flat = made.optimiser.state["weight"]
    views = made.module.parameters.values()
    assert {p.untyped_storage().data_ptr() for p in views} == {flat.untyped_storage().data_ptr()}
    assert torch.isfinite(flat).all()
