"""Sweeps with series and probes by arithmetic: the plain arm parts from the other above an LR."""

import math
import tomllib
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any

import numpy as np
import polars as pl

from redline.analysis.audit import audit
from redline.analysis.comparable import planned
from redline.analysis.findings import Design, Findings, Measured, find
from redline.config.edit import put
from redline.config.trial import QKNorm, Trial
from redline.report.page import Report
from redline.store.tables import SCHEMAS
from redline.study.spec import default_analysis

RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
ARMS = {"off": None, "on": QKNorm(), "l2": QKNorm(kind="l2"), "layernorm": QKNorm(kind="layernorm")}
INIT_LOSS, N_STEP = 5.5, 400

Loss = Callable[[str, int, float, int], float | None]


def parting(arm: str, n_layer: int, rate: float, seed: int) -> float:
    """Best at 3e-3; from 3e-2 on the plain arm loses, the deeper the more."""
    loss = 2.0 + 0.15 * abs(math.log10(rate / 3e-3)) + 0.01 * math.sin(7 * seed + n_layer)
    loss += 0.003 * math.sin(11 * seed + len(arm))
    return loss + (0.1 * n_layer if arm == "off" and rate > 2e-2 else 0)


def trial(arm: str = "off", **changes: Any) -> Trial:
    """A trial of the default protocol; `changes` by dotted path with `__` for the dot."""
    fields = tomllib.loads(
        files("redline.study").joinpath("protocols/nanogpt.toml").read_text("utf-8")
    )
    del fields["analysis"]
    fields |= {"protocol": "nanogpt", "device": "cpu", "seed": 0}
    for path, value in ({"model__qk_norm": ARMS[arm], "train__peak_lr": 1e-3} | changes).items():
        put(fields, path.replace("__", "."), value)
    return Trial.model_validate(fields)


def sweep(
    arms: Sequence[str] = ("off", "on"),
    depths: Sequence[int] = (2,),
    rates: Sequence[float] = RATES,
    n_seed: int = 3,
    loss: Loss = parting,
    n_step: int = N_STEP,
    **changes: Any,
) -> tuple[Measured, Design]:
    """What was measured and planned. A loss of None has no result, one of NaN ended non-finite."""
    trials = [
        trial(
            arm, model__n_layer=n, train__peak_lr=rate, train__n_step=n_step, seed=seed, **changes
        )
        for arm in arms
        for n in depths
        for rate in rates
        for seed in range(n_seed)
    ]
    named = [(f"{number:016x}", t) for number, t in enumerate(trials)]
    rows = planned(named)
    losses = [loss(t.model.arm, t.model.n_layer, t.train.peak_lr, t.seed) for _, t in named]
    finished = rows.with_columns(final_loss=pl.Series(losses, dtype=pl.Float64)).filter(
        pl.col("final_loss").is_not_null()
    )
    lost = pl.col("final_loss").is_nan()
    finished = finished.with_columns(
        token_sha256=pl.lit("a" * 64),
        tokenizer_sha256=pl.lit("b" * 64),
        init_loss=pl.lit(INIT_LOSS),
        bigram_loss=pl.lit(4.0),
        final_loss=pl.when(~lost).then("final_loss"),
        steps_done=pl.when(lost).then(pl.lit(n_step // 2)).otherwise(pl.lit(n_step)).cast(pl.Int64),
        non_finite=pl.when(lost).then(pl.lit("loss")),
        non_finite_step=pl.when(lost).then(pl.lit(n_step // 2)).cast(pl.Int64),
    )
    series, probes = _series(finished), _probes(finished)
    return Measured(finished, series, probes), Design(rows, rates)


def findings(**options: Any) -> Findings:
    measured, design = sweep(**options)
    return find(measured, design, default_analysis())


def report(title: str = "made by hand", **options: Any) -> Report:
    """A report of a sweep as a session would make it."""
    measured, design = sweep(**options)
    return Report(
        title=title,
        findings=find(measured, design, default_analysis()),
        series=measured.series,
        probes=measured.probes,
        facts=[("trials", str(design.trials.height))],
        warnings=[],
        audit=audit([trial("off"), trial("on")]),
        provenance=[("Software", "torch 2.13.0")],
        text='title = "made by hand"\n',
        command="redline run study.toml --store replica --only {}",
    )


def _series(finished: pl.DataFrame) -> pl.DataFrame:
    frames: list[pl.DataFrame] = []
    for row in finished.iter_rows(named=True):
        step = np.arange(row["steps_done"] + 1)
        end = row["final_loss"] or 2.0
        curve = end + (INIT_LOSS - end) * np.exp(-step / 40)
        if row["non_finite"]:
            curve[-1] = np.nan
        frames.append(
            pl.DataFrame(
                {
                    "trial_id": row["trial_id"],
                    "step": step,
                    "lr": row["peak_lr"],
                    "loss": curve,
                    "grad_norm": 1 + np.exp(-step / 60),
                    "param_norm": 30.0,
                    "update_norm": 0.1,
                    "eval_loss": np.where(step % 100 == 0, curve, np.nan),
                },
                # Steps without an evaluation hold none; a lost one stays lost.
                schema_overrides={"eval_loss": pl.Float64},
            ).with_columns(pl.when(pl.col("step") % 100 == 0).then("eval_loss").alias("eval_loss"))
        )
    return _of_schema(pl.concat(frames) if frames else None, "series")


def _probes(finished: pl.DataFrame) -> pl.DataFrame:
    rows = [
        {
            "trial_id": row["trial_id"],
            "step": step,
            "layer": layer,
            "max_logit": (1e5 if row["arm"] == "off" else 10) * row["peak_lr"] * (1 + step),
            "entropy_normalised": 0.9 if row["arm"] != "off" else 0.9 / (1 + 100 * row["peak_lr"]),
            "outlier_ratio": 5.0 + 100 * row["peak_lr"],
        }
        for row in finished.iter_rows(named=True)
        for step in range(0, row["steps_done"] + 1, 40)
        for layer in range(row["n_layer"])
    ]
    return _of_schema(pl.DataFrame(rows) if rows else None, "probes")


def _of_schema(frame: pl.DataFrame | None, name: str) -> pl.DataFrame:
    empty = pl.DataFrame(schema=SCHEMAS[name])
    return empty if frame is None else pl.concat([empty, frame], how="diagonal_relaxed")
