"""What one training run is: every scientific field, explicit, validated and frozen.

No field of a trial has a default; only the options of a component have. The protocol's values stand
in `study/protocols/*.toml`, so a stored trial says everything about itself and a changed protocol
cannot change what an old trial means.
"""

from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    ValidationInfo,
    field_validator,
    model_validator,
)

TEXT_SUFFIXES = (".txt", ".jsonl", ".parquet")
"""Files that `data.corpus` can name."""

VOCAB_SIZE = {"bytes": 256}
"""Tokenizer -> number of ids. Byte 0xFF occurs in no UTF-8 text: it separates documents."""


class Frozen(BaseModel):
    """A value: no unknown keys, no non-finite numbers, no change after validation."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _numbers_are_not_truth_values(cls, value: Any, info: ValidationInfo) -> Any:
        # Python counts True as 1: `n_layer = true` would train one layer without a word.
        field = cls.model_fields[info.field_name or ""]
        if isinstance(value, bool) and field.annotation is not bool:
            raise ValueError("a number is needed, not true or false")
        return value

    @field_validator("*", mode="after")
    @classmethod
    def _zero_has_one_spelling(cls, value: Any) -> Any:
        return abs(value) if isinstance(value, float) and not value else value


class QKNorm(Frozen):
    """The intervention: normalise queries and keys before their dot product.

    `rmsnorm` and `layernorm` act per head with one gain vector shared by the heads (Qwen3, Gemma 3;
    ViT-22B 2302.05442, 2309.14322), `rmsnorm_full` acts over the whole projected width (OLMo 2,
    2501.00656), `l2` divides by the norm and replaces 1/sqrt(head_dim) by one scale that starts at
    log2(T^2 - T) for context T (2010.04245).
    """

    kind: Literal["rmsnorm", "layernorm", "rmsnorm_full", "l2"] = "rmsnorm"
    gain: Literal["learned", "frozen", "none"] = "learned"
    position: Literal["before_rope", "after_rope"] = "before_rope"
    eps: PositiveFloat = 1e-6

    @model_validator(mode="after")
    def _l2_has_a_scale(self) -> Self:
        if self.kind == "l2" and self.gain == "none":
            raise ValueError('kind = "l2" replaces 1/sqrt(head_dim): its gain is learned or frozen')
        return self

    @property
    def label(self) -> str:
        """`on` for the default component, else its kind and the options that differ."""
        kind = "on" if self.kind == "rmsnorm" else self.kind
        options = (
            f"{name}={getattr(self, name)}"
            for name, field in QKNorm.model_fields.items()
            if name != "kind" and getattr(self, name) != field.default
        )
        return " ".join((kind, *options))


class Model(Frozen):
    """The decoder. `qk_norm` is None in the arm without the intervention."""

    n_layer: int = Field(ge=1, le=1000)
    n_head: int = Field(ge=1, le=1000)
    n_embd: int = Field(ge=1, le=100_000)
    block_size: int = Field(ge=2, le=1_000_000)
    bias: bool
    pos: Literal["learned", "rope"]
    tied_head: bool
    layer_norm_eps: PositiveFloat
    init_std: PositiveFloat
    qk_init: Literal["init_std", "inverse_sqrt"]
    qk_norm: QKNorm | None

    @property
    def head_dim(self) -> int:
        return self.n_embd // self.n_head

    @property
    def arm(self) -> str:
        """The name of the arm in tables and pictures: `off`, `on`, `l2`, `on gain=frozen`, ..."""
        return "off" if self.qk_norm is None else self.qk_norm.label


class Data(Frozen):
    """Which tokens. `corpus` only says where to find them; the identity holds their hash."""

    corpus: str = Field(min_length=1, pattern=r"^[^\x00]+$")
    tokenizer: Literal["bytes"]
    n_train_token: PositiveInt
    n_eval_token: PositiveInt

    @property
    def vocab_size(self) -> int:
        return VOCAB_SIZE[self.tokenizer]


class Train(Frozen):
    """The optimisation: AdamW, clipping, linear warm-up, cosine decay."""

    batch_size: PositiveInt
    n_step: int = Field(ge=1, le=100_000_000)
    peak_lr: float = Field(gt=0, le=1e30)  # beyond it torch's own arithmetic fails
    warmup_fraction: float = Field(ge=0, le=1)
    lr_floor: float = Field(ge=0)
    lr_floor_mode: Literal["fraction", "absolute"]
    weight_decay: float = Field(ge=0)
    weight_decay_mode: Literal["coupled", "independent"]
    beta1: float = Field(ge=0, lt=1)
    beta2: float = Field(ge=0, lt=1)
    adam_eps: PositiveFloat
    grad_clip: PositiveFloat
    z_loss: float = Field(ge=0)

    @property
    def warmup_step(self) -> int:
        """Updates until the peak, which is reached exactly: at least one."""
        return max(1, round(self.warmup_fraction * self.n_step))

    @property
    def min_lr(self) -> float:
        """The learning rate of the last update."""
        return self.lr_floor * (self.peak_lr if self.lr_floor_mode == "fraction" else 1.0)


class Measure(Frozen):
    """When and on what a trial is measured; equal in all arms."""

    eval_every: PositiveInt
    probe_every: PositiveInt
    n_probe_row: PositiveInt


class Trial(Frozen):
    """One training run of one arm: (arm, depth, peak LR, seed) and everything else."""

    protocol: Literal["nanogpt"]
    model: Model
    data: Data
    train: Train
    measure: Measure
    seed: int = Field(ge=0, lt=2**63)
    device: Literal["cpu", "cuda", "mps"]
    precision: Literal["float32"]

    @model_validator(mode="after")
    def _fields_fit_together(self) -> Self:
        m, d, t = self.model, self.data, self.train
        if m.n_embd % m.n_head:
            raise ValueError(f"model.n_embd = {m.n_embd} is not divisible by n_head = {m.n_head}")
        if m.pos == "rope" and m.head_dim % 2:
            raise ValueError(f"model.pos = 'rope' needs an even head_dim, not {m.head_dim}")
        if m.qk_norm and m.qk_norm.position == "after_rope" and m.pos != "rope":
            raise ValueError(
                f'model.qk_norm.position = "after_rope" needs model.pos = "rope", not "{m.pos}"'
            )
        if d.n_train_token <= m.block_size:
            raise ValueError(
                f"data.n_train_token = {d.n_train_token} holds no window of "
                f"block_size = {m.block_size} tokens and its target"
            )
        if d.n_eval_token % m.block_size:
            raise ValueError(
                f"data.n_eval_token = {d.n_eval_token} is not a multiple of "
                f"model.block_size = {m.block_size}"
            )
        if self.measure.n_probe_row * m.block_size > d.n_eval_token:
            raise ValueError(
                f"measure.n_probe_row = {self.measure.n_probe_row} needs more evaluation windows "
                f"than the {d.n_eval_token // m.block_size} there are"
            )
        if t.warmup_step >= t.n_step > 1:
            raise ValueError(
                f"train.warmup_fraction = {t.warmup_fraction} leaves no step to decay in: the "
                f"warm-up takes {t.warmup_step} of {t.n_step} steps"
            )
        if t.min_lr > t.peak_lr:
            raise ValueError(f"train.lr_floor = {t.lr_floor} lies above the peak {t.peak_lr}")
        return self
