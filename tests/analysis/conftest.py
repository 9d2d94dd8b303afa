"""Hand-made tables in the shape of `redline.store.tables`."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any

import polars as pl
import pytest

from redline.analysis.comparable import planned
from redline.analysis.findings import Design, Findings, Measured, find
from redline.analysis.outcome import outcomes
from redline.config.analysis import Analysis
from redline.config.edit import put
from redline.config.trial import QKNorm, Trial
from redline.store.schema import Column

N_STEP, WARMUP_STEP = 400, 40
INIT_LOSS, BIGRAM_LOSS = 5.5, 4.0

Losses = Mapping[tuple[str, float], Sequence[float | None]]

SERIES = {
    "trial_id": pl.String,
    "step": pl.Int64,
    "lr": pl.Float64,
    "loss": pl.Float64,
    "grad_norm": pl.Float64,
    "param_norm": pl.Float64,
    "update_norm": pl.Float64,
    "eval_loss": pl.Float64,
}
PROBES = {
    "trial_id": pl.String,
    "step": pl.Int64,
    "layer": pl.Int64,
    "max_logit": pl.Float64,
    "entropy": pl.Float64,
    "entropy_normalised": pl.Float64,
    "outlier_ratio": pl.Float64,
    "kurtosis_max": pl.Float64,
}
NO_SERIES, NO_PROBES = pl.DataFrame(schema=SERIES), pl.DataFrame(schema=PROBES)


def make_trial(arm: str = "off", **changes: Any) -> Trial:
    text = files("redline.study").joinpath("protocols/nanogpt.toml").read_text()
    nested = tomllib.loads(text) | {"protocol": "nanogpt", "device": "cpu", "seed": 0}
    del nested["analysis"]
    nested["model"]["qk_norm"] = {
        "off": None,
        "on": QKNorm(),
        "frozen": QKNorm(gain="frozen"),
        "l2": QKNorm(kind="l2"),
    }[arm]
    nested["train"]["peak_lr"] = 1e-2
    for path, value in changes.items():
        put(nested, path.replace("__", "."), value)
    return Trial.model_validate(nested)


def make_row(final_loss: float | None = 2.0, **changes: Any) -> dict[str, Any]:
    """One finished trial; a `final_loss` of None is a trial that ended non-finite at step 123."""
    row = planned([("", make_trial(**changes))]).row(0, named=True)
    hashes = {Column.TOKEN_SHA256: "a" * 64, Column.TOKENIZER_SHA256: "b" * 64}
    losses = {Column.INIT_LOSS: INIT_LOSS, Column.BIGRAM_LOSS: BIGRAM_LOSS}
    return named(row | hashes | losses | ended(final_loss))


def named(row: dict[str, Any]) -> dict[str, Any]:
    key = (row[Column.ARM], row["n_layer"], f"{row['peak_lr']:g}", row["seed"])
    return row | {Column.TRIAL_ID: "-".join(map(str, key))}


def ended(final_loss: float | None) -> dict[str, Any]:
    died = final_loss is None
    return {
        Column.FINAL_LOSS: final_loss,
        Column.STEPS_DONE: 123 if died else N_STEP,
        Column.NON_FINITE: "loss" if died else None,
        Column.NON_FINITE_STEP: 123 if died else None,
    }


def to_frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    types = {Column.FINAL_LOSS: pl.Float64, Column.NON_FINITE: pl.String}
    overrides = types | {Column.NON_FINITE_STEP: pl.Int64}
    return pl.DataFrame(rows, schema_overrides=overrides, infer_schema_length=None)


def make_sweep(losses: Losses, **changes: Any) -> pl.DataFrame:
    """Trials from (arm, peak LR) -> final loss of seed 0, 1, ..."""
    template = {arm: make_row(arm=arm, **changes) for arm in {arm for arm, _ in losses}}
    return to_frame(
        [
            named(template[arm] | {"peak_lr": lr, "seed": seed} | ended(loss))
            for (arm, lr), of_seed in losses.items()
            for seed, loss in enumerate(of_seed)
        ]
    )


def make_arms(**arms: Mapping[float, Sequence[float | None]]) -> Losses:
    """`off={peak LR: losses}, on={...}` -> what `make_sweep` takes."""
    return {(arm, lr): of_seed for arm, of_arm in arms.items() for lr, of_seed in of_arm.items()}


def make_findings(
    trials: pl.DataFrame,
    analysis: Analysis,
    design: pl.DataFrame | None = None,
    registered: Sequence[float] | None = None,
    *,
    is_whole: bool = True,
) -> Findings:
    """Findings without series and probes; without a `design`, what there is was to be."""
    planned = trials.unique(Column.TRIAL_ID, maintain_order=True) if design is None else design
    return find(
        Measured(trials, NO_SERIES, NO_PROBES), Design(planned, registered, is_whole), analysis
    )


def make_series(trial_id: str, **columns: Sequence[float]) -> pl.DataFrame:
    """Steps 1, 2, ... of one trial; what is not given is constant and harmless."""
    n_step = len(next(iter(columns.values())))
    fixed = dict.fromkeys(("lr", "loss", "grad_norm", "param_norm", "update_norm"), [1.0] * n_step)
    steps = {"trial_id": [trial_id] * n_step, "step": list(range(1, n_step + 1))}
    return pl.DataFrame(steps | fixed | columns | {"eval_loss": [None] * n_step}, schema=SERIES)


@pytest.fixture(scope="session")
def analysis() -> Analysis:
    return Analysis(delta=(0.1, 0.3), failed_margin=0.3, m_nec=0.1, m_eq=0.05)


@pytest.fixture(scope="session")
def trial() -> Callable[..., Trial]:
    return make_trial


@pytest.fixture(scope="session")
def row() -> Callable[..., dict[str, Any]]:
    return make_row


@pytest.fixture(scope="session")
def frame() -> Callable[..., pl.DataFrame]:
    return to_frame


@pytest.fixture(scope="session")
def sweep() -> Callable[..., pl.DataFrame]:
    return make_sweep


@pytest.fixture(scope="session")
def series() -> Callable[..., pl.DataFrame]:
    return make_series


@pytest.fixture(scope="session")
def probes() -> Callable[..., pl.DataFrame]:
    return lambda rows=(): pl.DataFrame(list(rows), schema=PROBES)


@pytest.fixture(scope="session")
def judge(analysis: Analysis) -> Callable[..., dict[str, dict[str, Any]]]:
    """Trial id -> the row of `outcomes`."""

    def run(
        trials: pl.DataFrame,
        series: pl.DataFrame | None = None,
        probes: pl.DataFrame | None = None,
        analysis: Analysis = analysis,
    ) -> dict[str, dict[str, Any]]:
        series = NO_SERIES if series is None else series
        probes = NO_PROBES if probes is None else probes
        table = outcomes(trials, series, probes, analysis)
        return {row["trial_id"]: row for row in table.iter_rows(named=True)}

    return run


@pytest.fixture(scope="session")
def judged(analysis: Analysis) -> Callable[..., pl.DataFrame]:
    """Losses -> the table of `outcomes`."""

    def run(losses: Losses, analysis: Analysis = analysis, **changes: Any) -> pl.DataFrame:
        return outcomes(make_sweep(losses, **changes), NO_SERIES, NO_PROBES, analysis)

    return run


@pytest.fixture(scope="session")
def findings(analysis: Analysis) -> Callable[..., Findings]:
    """Trials, and options of `make_findings` -> findings."""
    return lambda trials, **options: make_findings(trials, analysis, **options)


@pytest.fixture(scope="session")
def arms() -> Callable[..., Losses]:
    return make_arms
