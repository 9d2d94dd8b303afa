"""The columns of every table and the words of every state: what readers of a store rely on.

This module imports nothing of the store, so that analysis can use it without touching a disk.
"""

from enum import StrEnum


class Status(StrEnum):
    """What happened to the execution of a trial. It says nothing about the science."""

    PLANNED = "planned"
    RUNNING = "running"
    FINISHED = "finished"
    CRASHED = "crashed"
    PREEMPTED = "preempted"
    TIMED_OUT = "timed_out"
    DAMAGED = "damaged"  # finished, but its files are not those that were written


class Column:
    """Names shared by files, tables and analysis. Losses are nats per token."""

    TRIAL_ID = "trial_id"
    STEP = "step"  # updates done; 0 is before training
    LAYER = "layer"  # 0-based block; n_layer is the input of the final norm

    # trials: one row a finished trial, beside one column for each scientific field by its own name
    ARM = "arm"
    TOKEN_SHA256 = "token_sha256"  # noqa: S105
    TOKENIZER_SHA256 = "tokenizer_sha256"
    INIT_LOSS = "init_loss"
    FINAL_LOSS = "final_loss"  # null when the trial ended non-finite
    STEPS_DONE = "steps_done"
    NON_FINITE = "non_finite"  # loss, grad_norm, param_norm, logit; null when all stayed finite
    NON_FINITE_STEP = "non_finite_step"
    INIT_SHA256 = "init_sha256"
    BATCH_SHA256 = "batch_sha256"
    EVAL_SHA256 = "eval_sha256"
    BIGRAM_LOSS = "bigram_loss"  # of the corpus, on the evaluation tokens

    # rows of another tool only
    ORIGIN = "origin"  # name of the file they came from

    # series: one row a step
    LR = "lr"
    LOSS = "loss"
    GRAD_NORM = "grad_norm"  # global, before clipping
    PARAM_NORM = "param_norm"
    UPDATE_NORM = "update_norm"
    EVAL_LOSS = "eval_loss"  # null at steps without an evaluation

    # probes: one row a (step, layer)
    MAX_LOGIT = "max_logit"
    ENTROPY = "entropy"
    ENTROPY_NORMALISED = "entropy_normalised"
    ENTROPY_HEAD_MIN = "entropy_head_min"
    OUTLIER_RATIO = (
        "outlier_ratio"  # max abs / median abs of the residual stream entering the layer
    )
    OUTLIER_ABS = "outlier_abs"
    KURTOSIS_MEAN = "kurtosis_mean"
    KURTOSIS_MAX = "kurtosis_max"
    MASSIVE = "massive"  # Sun et al. 2402.17762: abs > 100 and > 1000 x median
    LOG_Z_SQ = "log_z_sq"  # mean squared log-partition of the output logits


GROUP_PREFIX = "group."
"""Columns of another tool's rows that separate what must not be pooled begin with this."""

RESULT_COLUMNS = (
    Column.INIT_LOSS,
    Column.FINAL_LOSS,
    Column.STEPS_DONE,
    Column.NON_FINITE,
    Column.NON_FINITE_STEP,
    Column.INIT_SHA256,
    Column.BATCH_SHA256,
    Column.EVAL_SHA256,
)
SERIES_COLUMNS = (
    Column.STEP,
    Column.LR,
    Column.LOSS,
    Column.GRAD_NORM,
    Column.PARAM_NORM,
    Column.UPDATE_NORM,
    Column.EVAL_LOSS,
)
ATTENTION_COLUMNS = (
    Column.MAX_LOGIT,
    Column.ENTROPY,
    Column.ENTROPY_NORMALISED,
    Column.ENTROPY_HEAD_MIN,
)
RESIDUAL_COLUMNS = (
    Column.OUTLIER_RATIO,
    Column.OUTLIER_ABS,
    Column.KURTOSIS_MEAN,
    Column.KURTOSIS_MAX,
    Column.MASSIVE,
)
