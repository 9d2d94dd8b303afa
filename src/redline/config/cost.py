"""Parameters, tokens and FLOPs of a trial, by arithmetic: no model is built."""

from dataclasses import dataclass

from redline.config.trial import Model, QKNorm, Trial


@dataclass(frozen=True)
class Cost:
    """What one trial takes. Tied weights count once; `n_step` updates of `tokens_per_step`."""

    n_param: int
    n_param_embedding: int
    tokens_seen: int
    flops: float


def cost(trial: Trial) -> Cost:
    """Cost of one trial.

    Training FLOPs per token are 6 N + 12 L d T (2204.02311, appendix B), N being the weights that
    multiply a token: the blocks, and the head once, tied or not.
    """
    m, t = trial.model, trial.train
    vocab_size = trial.data.vocab_size
    blocks = _block_params(m) * m.n_layer + _norm_params(m)
    embedding = vocab_size * m.n_embd * (1 if m.tied_head else 2)
    embedding += m.block_size * m.n_embd if m.pos == "learned" else 0
    tokens_seen = t.n_step * t.batch_size * m.block_size
    multiplied = blocks + vocab_size * m.n_embd
    flops_per_token = 6 * multiplied + 12 * m.n_layer * m.n_embd * m.block_size
    return Cost(blocks + embedding, embedding, tokens_seen, float(flops_per_token * tokens_seen))


def _block_params(m: Model) -> int:
    d = m.n_embd
    linears = 12 * d * d + (9 * d if m.bias else 0)
    return linears + 2 * _norm_params(m) + _qk_norm_params(m, m.qk_norm)


def _norm_params(m: Model) -> int:
    return m.n_embd * (2 if m.bias else 1)


def _qk_norm_params(m: Model, norm: QKNorm | None) -> int:
    if norm is None or norm.gain != "learned":
        return 0
    return {"l2": 1, "rmsnorm_full": 2 * m.n_embd}.get(norm.kind, 2 * m.head_dim)
