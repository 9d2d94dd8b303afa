"""Does an early attention logit foretell instability, beyond what the learning rate says?

LR drives both, so that a pooled AUC says little. It stands within one arm and depth, beside the AUC
of the LR alone, and once more among seeds of one LR, where only the logit can tell them apart. At
1e4 lies the line of 2309.14322: every run whose first layer passed it at 2 % of training diverged.
"""

import polars as pl

from redline.analysis.comparable import ARM_KEY, CELL_KEY, PEAK_LR
from redline.analysis.headline import EARLY_MAX_LOGIT, WARMUP_40_MAX_LOGIT, WARMUP_MAX_LOGIT
from redline.analysis.outcome import DIVERGED, UNSTABLE

PREDICTORS = (EARLY_MAX_LOGIT, WARMUP_40_MAX_LOGIT, WARMUP_MAX_LOGIT)
LINE = 1e4

PREDICTOR = "predictor"
N_UNSTABLE, N_STABLE, N_LEFT_OUT = "n_unstable", "n_stable", "n_left_out"
AUC, AUC_OF_LR = "auc", "auc_of_lr"
AUC_AT_ONE_LR, N_PAIR = "auc_at_one_lr", "n_pair_at_one_lr"
ABOVE, ABOVE_DIVERGED = "n_above_line", "n_above_line_diverged"
BELOW, BELOW_DIVERGED = "n_below_line", "n_below_line_diverged"
WHY = "why"
_VALUE, _PROBED = "_value", "_probed"


def mechanism(outcomes: pl.DataFrame, is_unstable: pl.Expr) -> pl.DataFrame:
    """One row a (control, n_layer, arm, predictor); `outcomes` carry the headline measures.

    `is_unstable` is the flag of the headline tier, null where noise leaves no outcome. `auc` is the
    share of (unstable, stable) pairs of trials in which the unstable one had the larger logit, ties
    counting a half; a logit that is no number is the largest. Trials without an outcome are left
    out of it and counted; the counts at the line take in every probed trial.
    """
    key = [*ARM_KEY, PREDICTOR]
    trials = (
        outcomes.with_columns(is_unstable.alias(UNSTABLE))
        .unpivot(
            PREDICTORS,
            index=[*CELL_KEY, UNSTABLE, DIVERGED],
            variable_name=PREDICTOR,
            value_name=_VALUE,
        )
        .with_columns(pl.col(_VALUE).cast(pl.Float64).fill_nan(float("inf")))
    )
    is_probed = pl.col(_VALUE).is_not_null()
    is_known = pl.col(UNSTABLE).is_not_null() & is_probed
    known = trials.filter(is_known)
    above = pl.col(_VALUE) > LINE
    counts = (
        trials.filter(is_probed)
        .group_by(key)
        .agg(
            pl.col(UNSTABLE).sum().alias(N_UNSTABLE),
            (~pl.col(UNSTABLE)).sum().alias(N_STABLE),
            above.sum().alias(ABOVE),
            (above & pl.col(DIVERGED)).sum().alias(ABOVE_DIVERGED),
            (~above).sum().alias(BELOW),
            (~above & pl.col(DIVERGED)).sum().alias(BELOW_DIVERGED),
        )
    )
    at_one_lr = _aucs(known, _VALUE, [*key, PEAK_LR], key).rename(
        {AUC: AUC_AT_ONE_LR, "n_pair": N_PAIR}
    )
    within = _aucs(known, _VALUE, key, key).drop("n_pair")
    of_lr = _aucs(known, PEAK_LR, key, key).drop("n_pair").rename({AUC: AUC_OF_LR})
    table = trials.group_by(key).agg(
        (~is_known).sum().alias(N_LEFT_OUT), is_probed.any().alias(_PROBED)
    )
    for part in (counts, within, of_lr, at_one_lr):
        table = table.join(part, on=key, how="left")
    numbers = [n for n in SCHEMA if n.startswith("n_") and n != "n_layer"]
    return (
        table.with_columns(pl.col(numbers).fill_null(0).cast(pl.Int64))
        .with_columns(_why().alias(WHY))
        .select(*SCHEMA)
        .sort(*ARM_KEY, pl.col(PREDICTOR).replace_strict(PREDICTORS, range(len(PREDICTORS))))
    )


def _aucs(trials: pl.DataFrame, value: str, within: list[str], key: list[str]) -> pl.DataFrame:
    """Mann-Whitney's U over its pairs, both summed over the groups `within` which trials meet."""
    ranked = trials.with_columns(pl.col(value).rank("average").over(within).alias("_rank"))
    n = pl.col(UNSTABLE).sum().cast(pl.Float64)
    groups = ranked.group_by(within).agg(
        (pl.col("_rank").filter(UNSTABLE).sum() - n * (n + 1) / 2).alias("_u"),
        (n * (pl.len() - n)).alias("n_pair"),
    )
    return (
        groups.group_by(key)
        .agg(pl.col("_u", "n_pair").sum())
        .select(
            *key,
            pl.when(pl.col("n_pair") > 0).then(pl.col("_u") / pl.col("n_pair")).alias(AUC),
            pl.col("n_pair").cast(pl.Int64),
        )
    )


def _why() -> pl.Expr:
    return (
        pl.when(~pl.col(_PROBED))
        .then(pl.lit("not probed"))
        .when((pl.col(N_UNSTABLE) == 0) & (pl.col(N_STABLE) == 0))
        .then(pl.lit("every outcome is below noise"))
        .when(pl.col(N_UNSTABLE) == 0)
        .then(pl.lit("no trial is unstable"))
        .when(pl.col(N_STABLE) == 0)
        .then(pl.lit("no trial is stable"))
        .when(pl.col(N_PAIR) == 0)
        .then(pl.lit("no LR has seeds of both outcomes"))
        .otherwise(pl.lit(""))
    )


SCHEMA = (
    {**dict.fromkeys(ARM_KEY, pl.String()), "n_layer": pl.Int64(), PREDICTOR: pl.String()}
    | dict.fromkeys((N_UNSTABLE, N_STABLE, N_LEFT_OUT), pl.Int64())
    | dict.fromkeys((AUC, AUC_OF_LR, AUC_AT_ONE_LR), pl.Float64())
    | dict.fromkeys((N_PAIR, ABOVE, ABOVE_DIVERGED, BELOW, BELOW_DIVERGED), pl.Int64())
    | {WHY: pl.String()}
)
