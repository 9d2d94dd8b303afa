"""One trial from start to end: resuming bit for bit, measuring without touching, dying in order."""

import math

import numpy as np
import psutil
import pytest
import torch

from redline.data.tokens import Corpus
from redline.files import to_json
from redline.train import loop
from redline.train.loop import probe_steps, train


class Listed:
    """A recorder of lists, with the same promises as the store's."""

    def __init__(self):
        self.rows, self.probes, self.saved = [], [], []

    def step(self, row):
        self.rows.append(row)

    def probe(self, row):
        self.probes.append(row)

    def save(self, step, checkpoint):
        self.saved.append((step, checkpoint))

    def checkpoints(self):
        return (content for _, content in reversed(self.saved))

    def rewind(self, step):
        self.rows = [row for row in self.rows if row["step"] <= step]
        self.probes = [row for row in self.probes if row["step"] <= step]


class KilledError(Exception):
    pass


class KilledAt(Listed):
    """A recorder whose process dies while it writes one step."""

    def __init__(self, step):
        super().__init__()
        self.fatal = step

    def step(self, row):
        if row["step"] == self.fatal:
            raise KilledError
        super().step(row)


@pytest.fixture
def corpus():
    # A noisy cycle: easy to learn, so that losses move within twenty steps.
    rng = np.random.default_rng(0)
    ids = (np.arange(20_000) * 7 % 50 + rng.integers(0, 3, 20_000)).astype(np.uint8)
    manifest = {"vocab_size": 256, "eval_sha256": "e"}
    return Corpus(ids, ids[:513].copy(), manifest)


def run(trial, corpus, recorder=None, every_s=1e9):
    recorder = recorder or Listed()
    return train(trial, corpus, recorder, checkpoint_every_s=every_s), recorder


def same(a, b):
    assert to_json(a[0]) == to_json(b[0])
    assert to_json(a[1].rows) == to_json(b[1].rows)
    assert to_json(a[1].probes) == to_json(b[1].probes)


@pytest.mark.parametrize("arm", [None, {}], ids=["off", "on"])
@pytest.mark.parametrize("fatal", [1, 7, 13, 20])
def test_case_s11_s21_a_killed_run_continues_with_the_same_bits(make_trial, corpus, arm, fatal):
    """wandb#4482, cvs#360: resumed logs doubled steps, and the check compared different steps.

    Every row of the resumed run is compared with an uninterrupted twin: learning rate, loss, norms
    and probes to the last bit (the moments decide the next updates), no step twice or missing.
    """
    trial = make_trial(model__qk_norm=arm, train__peak_lr=1e-2)
    straight = run(trial, corpus)
    recorder = KilledAt(fatal)
    with pytest.raises(KilledError):
        run(trial, corpus, recorder, every_s=-1.0)
    recorder.saved = [(s, c) for s, c in recorder.saved if s <= fatal - fatal % 3]
    recorder.fatal = None
    resumed = run(trial, corpus, recorder)
    same(straight, resumed)
    assert [row["step"] for row in resumed[1].rows] == list(range(21))


def test_case_s20_a_damaged_checkpoint_falls_back_to_the_one_before(make_trial, corpus, capsys):
    """prime-rl#1825: the newest checkpoint was half written and the run was lost."""
    trial = make_trial()
    straight = run(trial, corpus)
    recorder = KilledAt(15)
    with pytest.raises(KilledError):
        run(trial, corpus, recorder, every_s=-1.0)
    for damage in (
        lambda c: c[: len(c) // 2],
        lambda c: c[:-4] + b"\x00\x01\x02\x03",
        lambda c: b"",
    ):
        step, content = recorder.saved[-1]
        twin = Listed()
        twin.rows, twin.probes = list(recorder.rows), list(recorder.probes)
        twin.saved = [*recorder.saved[:-1], (step, damage(content))]
        same(straight, run(trial, corpus, twin))
    assert "damaged checkpoint" in capsys.readouterr().out


def test_a_checkpoint_of_another_trial_or_text_is_passed_over(make_trial, corpus, capsys):
    """Copied files must not put the weights of one learning rate under the name of another."""
    _, foreign = run(make_trial(train__peak_lr=1e-2), corpus, every_s=-1.0)
    straight = run(make_trial(), corpus)
    recorder = Listed()
    recorder.saved = foreign.saved
    same(straight, run(make_trial(), corpus, recorder))
    assert "another trial" in capsys.readouterr().out


def test_case_t24_measuring_more_often_changes_no_training_loss(make_trial, corpus):
    """char-rnn#17: how often one evaluated changed the training, through a shared random stream."""
    losses = set()
    for eval_every, probe_every in ((5, 5), (7, 1), (20, 20)):
        trial = make_trial(measure__eval_every=eval_every, measure__probe_every=probe_every)
        torch.manual_seed(eval_every)
        _, recorder = run(trial, corpus)
        losses.add(tuple(row["loss"] for row in recorder.rows[1:]))
    assert len(losses) == 1


def test_case_d07_evaluation_is_the_same_tokens_every_time(make_trial, corpus):
    """llm-baselines#16: the validation iterator was not reset, so each evaluation differed."""
    trial = make_trial()
    state = loop.Run(trial, corpus)
    other = loop.Run(make_trial(seed=9), corpus)
    other.decoder.load_state_dict(state.decoder.state_dict())
    args = (state.eval_rows, 4)
    first = loop.evaluate(state.decoder, *args)
    assert first == loop.evaluate(state.decoder, *args)
    assert first == loop.evaluate(other.decoder, other.eval_rows, 4)


def test_evaluation_weighs_every_target_the_same(make_trial, corpus):
    state = loop.Run(make_trial(), corpus)
    with torch.no_grad():
        logits = state.decoder(state.eval_rows[:, :-1])
        expected = loop.cross_entropy(logits, state.eval_rows[:, 1:]).item()
    assert loop.evaluate(state.decoder, state.eval_rows, 4) == pytest.approx(expected, abs=1e-6)


def test_both_arms_read_the_same_batches_and_start_from_the_same_weights(make_trial, corpus):
    off, _ = run(make_trial(), corpus)
    on, _ = run(make_trial(model__qk_norm={}, model__n_layer=3), corpus)
    assert off["batch_sha256"] == on["batch_sha256"]
    other, _ = run(make_trial(seed=1), corpus)
    assert other["batch_sha256"] != off["batch_sha256"]
    assert other["init_sha256"] != off["init_sha256"]


def test_the_loss_falls_and_the_record_is_complete(make_trial, corpus):
    result, recorder = run(make_trial(train__peak_lr=1e-2), corpus)
    assert result["init_loss"] == pytest.approx(math.log(256), rel=0.02)
    assert result["final_loss"] < result["init_loss"] - 1
    assert (result["steps_done"], result["non_finite"]) == (20, None)
    assert [r["step"] for r in recorder.rows if "eval_loss" in r] == [0, 5, 10, 15, 20]
    assert all(len(r["layers"]) == 2 and len(r["residual"]) == 3 for r in recorder.probes)
    assert recorder.rows[-1]["eval_loss"] == result["final_loss"]
    assert all(
        {"lr", "loss", "grad_norm", "param_norm", "update_norm"} <= set(r)
        for r in recorder.rows[1:]
    )


def test_the_probe_schedule_holds_the_headlines_of_the_protocol(make_trial):
    steps = probe_steps(make_trial(train__n_step=400, measure__probe_every=100))
    assert steps == {0, 8, 16, 40, 100, 200, 300, 400}


@pytest.mark.parametrize(
    ("what", "value", "reason"),
    [
        ("weight", math.nan, "loss"),
        ("weight", math.inf, "loss"),
        ("gradient", math.nan, "grad_norm"),
        ("gradient", math.inf, "grad_norm"),
        ("gradient", 1e20, "grad_norm"),  # finite, but its norm is not, and a clip would give zeros
        ("logit", -math.inf, "logit"),  # the loss of another target stays finite
    ],
)
def test_case_t09_the_first_non_finite_number_ends_the_trial_as_a_result(
    make_trial, corpus, monkeypatch, what, value, reason
):
    """habitat-lab#2226: NaN reached the weights and then overwrote the good checkpoints."""
    trial = make_trial()
    at_step = 7
    update = loop.Run.update

    def poisoned(self, step):
        if step == at_step and what == "weight":
            self.optimiser.weights[0] = value
        if step == at_step and what == "gradient":
            self.decoder.norm.weight.register_hook(lambda g: torch.full_like(g, value))
        if step == at_step and what == "logit":
            self.decoder.register_forward_hook(
                lambda module, inputs, logits: logits.index_fill(-1, torch.tensor(200), value)
            )
        return update(self, step)

    monkeypatch.setattr(loop.Run, "update", poisoned)
    result, recorder = run(trial, corpus, every_s=-1.0)
    assert (result["non_finite"], result["non_finite_step"]) == (reason, at_step)
    assert result["final_loss"] is None
    assert recorder.rows[-1]["step"] == at_step == result["steps_done"]
    assert max(step for step, _ in recorder.saved) == at_step - 1


def test_z_loss_is_added_to_the_gradient_and_not_to_the_recorded_loss(make_trial, corpus):
    """A loss that carries its own penalty cannot be compared between arms."""
    plain = loop.Run(make_trial(), corpus)
    penal = loop.Run(make_trial(train__z_loss=1.0), corpus)
    assert plain.update(1)["loss"] == penal.update(1)["loss"]
    assert not torch.equal(plain.optimiser.weights, penal.optimiser.weights)


def test_case_g05_a_trial_uses_two_shapes_at_most(make_trial, corpus, monkeypatch):
    """epub2tts-chatterbox#19: device memory grew with every new shape."""
    shapes = set()
    monkeypatch.setattr(
        loop,
        "cross_entropy",
        lambda x, y, real=loop.cross_entropy: shapes.add(x.shape) or real(x, y),
    )
    run(make_trial(), corpus)
    assert len(shapes) <= 2


def test_case_x10_many_trials_in_one_process_do_not_grow_it(make_trial, corpus):
    """pytorch#130776, pytorch#104773: short-lived models filled caches until the worker died."""
    own = psutil.Process()
    sizes = []
    for seed in range(30):
        run(make_trial(seed=seed, train__n_step=3), corpus)
        sizes.append(own.memory_info().rss)
    assert (sizes[-1] - sizes[9]) / 20 < 2e6
