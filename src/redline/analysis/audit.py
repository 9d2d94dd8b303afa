"""The isolation audit of protocol section 10: is QK-norm all that differs between the arms?

It reads the trials of a study and no result. Each item gets one of four verdicts with the values
behind it. Most items follow one rule over the fields that they depend on; others are a function.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import log2, sqrt
from typing import Any

from redline.config.cost import cost
from redline.config.edit import value_at
from redline.config.trial import Trial

Trials = Sequence[Trial]


class Verdict(StrEnum):
    """What the study does about one thing that could explain a difference between the arms."""

    FIXED = "fixed equal"
    ARM = "an arm of this study"
    MOVED = "moved by the intervention"
    UNCONTROLLED = "uncontrolled"


@dataclass(frozen=True)
class AuditRow:
    """One item of the audit."""

    item: str
    verdict: Verdict
    detail: str


@dataclass(frozen=True)
class Item:
    """The dotted fields that an item depends on, and what is fixed besides them."""

    name: str
    paths: tuple[str, ...]
    note: str = ""


def audit(trials: Trials) -> list[AuditRow]:
    """Every item of the protocol's audit for the trials of a study.

    The rule: fields with one value are fixed equal; with several values, each with and without
    QK-norm, they are an arm of this study; values that only one side has are uncontrolled.
    """
    return [_by_fields(trials, item) if isinstance(item, Item) else item(trials) for item in ITEMS]


def _by_fields(trials: Trials, item: Item) -> AuditRow:
    verdict, detail = _spread(trials, item.paths)
    return AuditRow(item.name, verdict, "; ".join(filter(None, (detail, item.note))))


def _spread(trials: Trials, paths: tuple[str, ...]) -> tuple[Verdict, str]:
    everywhere = _values(trials, paths)
    by_side = {side: _values(members, paths) for side, members in _sides(trials).items()}
    if any(values != everywhere for values in by_side.values()):
        detail = "; ".join(f"{side}: {_listed(paths, by_side[side])}" for side in by_side)
        return Verdict.UNCONTROLLED, detail
    return Verdict.ARM if len(everywhere) > 1 else Verdict.FIXED, _listed(paths, everywhere)


def _sides(trials: Trials) -> dict[str, list[Trial]]:
    # Not by arm: a control arm such as a frozen gain exists at the base setting only.
    sides = {
        "off": [trial for trial in trials if trial.model.qk_norm is None],
        "QK-norm": [trial for trial in trials if trial.model.qk_norm is not None],
    }
    return {side: members for side, members in sides.items() if members}


def _values(trials: Trials, paths: tuple[str, ...]) -> list[Any]:
    return sorted({tuple(value_at(trial, path) for path in paths) for trial in trials})


def _listed(paths: tuple[str, ...], values: Sequence[tuple[Any, ...]]) -> str:
    columns = zip(paths, zip(*values, strict=True), strict=True)
    return ", ".join(
        f"{path.rpartition('.')[2]} = {' | '.join(map(str, dict.fromkeys(column)))}"
        for path, column in columns
    )


def _span(numbers: Collection[float]) -> str:
    low, high = (
        f"{number:,}" if isinstance(number, int) else f"{number:.4g}"
        for number in (min(numbers), max(numbers))
    )
    return low if low == high else f"{low} to {high}"


def _moved(trials: Trials, name: str, detail: str, control: str, *, present: bool) -> AuditRow:
    if len(_sides(trials)) < 2:
        return AuditRow(name, Verdict.FIXED, "QK-norm is the same in all trials")
    state = "in this study" if present else "not in this study"
    return AuditRow(name, Verdict.MOVED, f"{detail}; control arm {control}: {state}")


def _temperature(trials: Trials) -> AuditRow:
    plain = [t.model for t in trials if t.model.qk_norm is None]
    # A normalised input gives q.k / sqrt(head_dim) a standard deviation of std^2 x n_embd.
    std = {m.init_std**2 * m.n_embd if m.qk_init == "init_std" else 1.0 for m in plain} or {1.0}
    normed = {
        log2(m.block_size**2 - m.block_size) / sqrt(m.head_dim) if m.qk_norm.kind == "l2" else 1.0
        for m in (t.model for t in trials)
        if m.qk_norm is not None
    } or {1.0}
    return _moved(
        trials,
        "initial attention temperature",
        f"logit std at initialisation: {_span(std)} without QK-norm (init_std^2 x n_embd, or 1 "
        f"with inverse_sqrt), {_span(normed)} with it",
        "qk_init = inverse_sqrt",
        present=any(m.qk_init == "inverse_sqrt" for m in plain),
    )


def _scale_invariance(trials: Trials) -> AuditRow:
    decays = {t.train.weight_decay for t in trials}
    return _moved(
        trials,
        "scale invariance of W_q and W_k",
        "under QK-norm their scale is free, so weight decay sets their effective LR "
        f"(weight_decay {_span(decays)})",
        "weight_decay = 0",
        present=0.0 in decays,
    )


def _gains(trials: Trials) -> AuditRow:
    norms = [t.model.qk_norm for t in trials if t.model.qk_norm is not None]
    extra = {cost(t).n_param - cost(_without_norm(t)).n_param for t in trials}
    return _moved(
        trials,
        "extra gains",
        f"QK-norm adds {max(extra)} learned parameters at most",
        "gain = frozen",
        present=any(norm.gain != "learned" for norm in norms),
    )


def _without_norm(trial: Trial) -> Trial:
    return trial.model_copy(update={"model": trial.model.model_copy(update={"qk_norm": None})})


def _pairing(trials: Trials) -> AuditRow:
    partners = [
        {_without_norm(trial).model_dump_json() for trial in members}
        for members in _sides(trials).values()
    ]
    shared = set[str].intersection(*partners)
    alone = sum(_without_norm(trial).model_dump_json() not in shared for trial in trials)
    if len(partners) < 2:
        return AuditRow("pairing", Verdict.UNCONTROLLED, "QK-norm is the same in all trials")
    return AuditRow(
        "pairing",
        Verdict.UNCONTROLLED if alone else Verdict.FIXED,
        f"{len(trials) - alone} of {len(trials)} trials have a partner that differs in QK-norm "
        "alone; a seed fixes the initial weights, each from its own generator",
    )


def _warmup(trials: Trials) -> AuditRow:
    verdict, detail = _spread(trials, ("train.warmup_fraction", "train.n_step"))
    steps = _span({t.train.warmup_step for t in trials})
    return AuditRow("warm-up", verdict, f"{detail}; {steps} absolute steps")


def _lr_floor(trials: Trials) -> AuditRow:
    verdict, detail = _spread(trials, ("train.lr_floor", "train.lr_floor_mode"))
    floors = _span({t.train.min_lr for t in trials})
    return AuditRow("LR floor", verdict, f"{detail}; the last update has LR {floors}")


def _lr_grid(trials: Trials) -> AuditRow:
    """The peak LR is the swept axis and no arm: what matters is that both arms sweep the same."""
    verdict, detail = _spread(trials, ("train.peak_lr",))
    equal = verdict is not Verdict.UNCONTROLLED
    return AuditRow("LR grid per arm", Verdict.FIXED if equal else verdict, detail)


def _depth(trials: Trials) -> AuditRow:
    """Depth against size: equal in both arms, and what else moves along the depth axis."""
    n_layers = sorted({t.model.n_layer for t in trials})
    widths, sizes = {t.model.n_embd for t in trials}, {cost(t).n_param for t in trials}
    detail = f"n_layer {' | '.join(map(str, n_layers))}, n_embd {_span(widths)}"
    detail += f", {_span(sizes)} parameters"
    verdict, _ = _spread(trials, ("model.n_layer", "model.n_embd"))
    if len(n_layers) > 1 and len(widths) == 1:
        detail += "; at fixed width the parameter count grows with depth"
        verdict = Verdict.UNCONTROLLED
    return AuditRow("depth at fixed width or fixed size", verdict, detail)


def _compute_over_depth(trials: Trials) -> AuditRow:
    verdict, detail = _spread(trials, ("train.n_step",))
    flops = {t.model.n_layer: cost(t).flops for t in trials}
    detail += f"; FLOPs {_span(set(flops.values()))}"
    if len(flops) > 1 and verdict is Verdict.FIXED:
        detail += ": equal steps, so deeper trials take more FLOPs"
        verdict = Verdict.UNCONTROLLED
    return AuditRow("equal steps or equal FLOPs over depth", verdict, detail)


def _heads(trials: Trials) -> AuditRow:
    verdict, detail = _spread(trials, ("model.n_head", "model.n_embd"))
    return AuditRow(
        "heads and head_dim along depth",
        verdict,
        f"{detail}, head_dim = {_span({t.model.head_dim for t in trials})}",
    )


def _residual_init(trials: Trials) -> AuditRow:
    verdict, detail = _spread(trials, ("model.init_std",))
    std = {t.model.init_std / sqrt(2 * t.model.n_layer) for t in trials}
    return AuditRow(
        "residual-init scaling", verdict, f"{detail}; init_std / sqrt(2 n_layer): {_span(std)}"
    )


def _norm_form(trials: Trials) -> AuditRow:
    norms = [t.model.qk_norm for t in trials if t.model.qk_norm is not None]
    forms = sorted(
        {f"kind = {n.kind}, eps = {n.eps}, gain = {n.gain}, position = {n.position}" for n in norms}
    )
    verdict = Verdict.ARM if len(forms) > 1 else Verdict.FIXED
    return AuditRow(
        "norm kind, eps, gain, position", verdict, " | ".join(forms) or "no QK-norm in any trial"
    )


def _softmax_scale(trials: Trials) -> AuditRow:
    scale = f"1/sqrt(head_dim) = {_span({1 / sqrt(t.model.head_dim) for t in trials})}"
    if any(t.model.qk_norm and t.model.qk_norm.kind == "l2" for t in trials):
        return _moved(
            trials,
            "softmax scale",
            f"{scale} except in the l2 arm, which starts at log2(T^2 - T)",
            "kind = rmsnorm",
            present=any(t.model.qk_norm and t.model.qk_norm.kind != "l2" for t in trials),
        )
    return AuditRow("softmax scale", Verdict.FIXED, scale)


def _epochs(trials: Trials) -> AuditRow:
    paths = ("train.batch_size", "model.block_size", "train.n_step", "data.n_train_token")
    verdict, detail = _spread(trials, paths)
    tokens = {cost(t).tokens_seen for t in trials}
    epochs = {cost(t).tokens_seen / t.data.n_train_token for t in trials}
    return AuditRow(
        "batch, context, tokens, epochs",
        verdict,
        f"{detail}; {_span(tokens)} tokens seen, {_span(epochs)} epochs",
    )


def _evaluation_noise(trials: Trials) -> AuditRow:
    verdict, detail = _spread(trials, ("data.n_eval_token",))
    n_seed = len({t.seed for t in trials})
    return AuditRow(
        "evaluation noise",
        verdict if n_seed > 1 else Verdict.UNCONTROLLED,
        f"{detail}; the same tokens for every trial, seeds that show the spread: {n_seed}",
    )


ITEMS: tuple[Item | Callable[[Trials], AuditRow], ...] = (
    _pairing,
    _temperature,
    _scale_invariance,
    _gains,
    Item(
        "weight decay",
        ("train.weight_decay", "train.weight_decay_mode"),
        "on tensors of two or more dimensions, never on a norm gain",
    ),
    Item("optimiser", ("train.beta1", "train.beta2", "train.adam_eps"), "AdamW"),
    Item("gradient clip", ("train.grad_clip",)),
    Item("z-loss", ("train.z_loss",)),
    _warmup,
    _lr_floor,
    _lr_grid,
    Item("position encoding", ("model.pos",)),
    _depth,
    _heads,
    _residual_init,
    Item("tied embeddings", ("model.tied_head",)),
    Item("norm of the residual stream", ("model.layer_norm_eps",), "LayerNorm before each block"),
    _norm_form,
    _softmax_scale,
    Item("dropout and biases", ("model.bias",), "there is no dropout"),
    Item("precision", ("precision",)),
    Item("device kind", ("device",)),
    Item(
        "attention kernel, compile, stack",
        ("device",),
        "one numerics path for each device kind; versions are in the provenance",
    ),
    _epochs,
    _compute_over_depth,
    Item(
        "tokenizer and corpus",
        ("data.tokenizer", "data.corpus"),
        "the hashes of both are part of a trial's identity",
    ),
    Item("batch order", ("seed",), "batch k is a function of seed and k, whatever arm and depth"),
    Item(
        "probe schedule",
        ("measure.eval_every", "measure.probe_every", "measure.n_probe_row"),
    ),
    _evaluation_noise,
)
