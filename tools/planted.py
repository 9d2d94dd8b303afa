"""Simulated studies whose truth is known, as tables that the analysis takes for real ones.

A world fixes the curves of both arms: a base that falls to its best LR and rises slowly after it,
and above the threshold theta of a seed a failure. `sharp` worlds are the estimator's own model:
normal thresholds, a jump or a non-finite end. Others have thresholds that are skewed, heavy-tailed
or uniform, losses that grow smoothly, and noise that grows with the LR.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files

import numpy as np
import polars as pl
from numpy.typing import NDArray

from redline.analysis.comparable import planned
from redline.analysis.findings import Design, Measured
from redline.config.edit import put
from redline.config.trial import QKNorm, Trial
from redline.store.schema import Column
from redline.store.tables import SCHEMAS

Floats = NDArray[np.float64]

INIT_LOSS, BIGRAM_LOSS, BASE = 5.5, 4.0, 2.0
LOWEST, HIGHEST = -3.5, -0.5  # log10 of the grid's ends
ARMS = ("off", "on")
OFF, ON = 0, 1
M_NEC, M_EQ = 0.1, 0.05
DEGRADED = 0.3

SCENARIOS = {
    # name: share of studies; whether H1, H2 and, given a trend, H3 are true
    "effect": (0.35, True, True, True),
    "nothing": (0.1, False, False, False),
    "quality gap": (0.1, False, False, False),
    "low LR at the margin": (0.15, False, True, True),
    "high LR at the margin": (0.1, False, False, False),
    "sensitivity alone": (0.1, True, False, False),
    "threshold alone": (0.1, None, False, True),
}
"""Nulls with an effect in one part only are half of all nulls; None is not scored."""

EXTRAS = {"": 0.5, "missing": 0.15, "flips": 0.1, "censored": 0.15, "sd 0.3": 0.05, "bimodal": 0.05}
SHAPES = {"sharp": 0.5, "smooth": 0.2, "skewed": 0.1, "heavy tail": 0.1, "uniform": 0.1}


@dataclass(frozen=True)
class World:
    """One study's truth. Thresholds are in log10 LR, `trend` in decades per doubling of depth."""

    scenario: str
    shape: str
    extra: str
    n_seed: int
    depths: tuple[int, ...]
    rates: Floats  # log10
    theta: Floats  # (depth, arm)
    trend: float
    sd: float
    shared: float  # share of the seed variance that both arms and all depths have in common
    best: float  # log10 of the best LR
    noise: float
    jump: float
    p_non_finite: float
    steepness: float  # of a smooth failure, nat per decade
    gap: Floats = field(repr=False)  # off - on beside failures, one for each rate
    bump: float = 0.0  # of the arm with QK-norm at the lowest rate

    def is_true(self, hypothesis: str) -> bool | None:
        """Whether H1, H2 or H3 holds here; None where the scenario leaves it open."""
        of_scenario = SCENARIOS[self.scenario][int(hypothesis[1])]
        return of_scenario and self.trend < 0 if hypothesis == "H3" else of_scenario


def draw_world(random: np.random.Generator, n_seed: int) -> World:
    """A study at random; half of them follow the estimators' model."""
    scenario = random.choice(list(SCENARIOS), p=[share for share, *_ in SCENARIOS.values()])
    extra = random.choice(list(EXTRAS), p=list(EXTRAS.values()))
    shape = random.choice(list(SHAPES), p=list(SHAPES.values()))
    rates = np.linspace(LOWEST, HIGHEST, random.integers(8, 13))
    step = rates[1] - rates[0]
    depths = (2, 4) if random.random() < 0.3 else (2, 4, 8)
    trend = 0.0 if random.random() < 0.5 else -random.uniform(0.1, 0.25)
    best = random.uniform(-2.9, -2.5)
    ratio = random.uniform(0.4, 0.9) if scenario in ("effect", "low LR at the margin") else 0.0
    ratio = random.uniform(0.3, 0.5) if scenario == "threshold alone" else ratio
    lowest = best + 2 * step - trend * np.log2(depths[-1] / 2)
    highest = HIGHEST - ratio - step
    of_off = random.uniform(lowest, max(highest, lowest + 0.1))
    if extra == "censored":
        of_off = HIGHEST - ratio + random.uniform(-0.15, 0.15)
    theta = of_off + trend * np.log2(np.array(depths) / 2)[:, None] + np.array([0.0, ratio])
    gap = np.zeros(len(rates))
    if scenario == "quality gap":
        gap += 0.15
    elif scenario == "low LR at the margin":
        gap += M_EQ
    elif scenario == "high LR at the margin":
        gap[rates > best + 1.5 * step] = M_NEC
        theta = theta + 10.0  # nothing fails
    elif scenario == "sensitivity alone":
        gap = np.clip((rates - best) * 0.4, 0, 0.22)
    found = World(
        scenario=str(scenario),
        shape=str(shape),
        extra=str(extra),
        n_seed=n_seed,
        depths=depths,
        rates=rates,
        theta=theta,
        trend=trend,
        sd=0.3 if extra == "sd 0.3" else random.uniform(0.05, 0.15),
        shared=random.uniform(0.2, 0.7),
        best=best,
        noise=random.uniform(0.005, 0.03),
        jump=random.uniform(0.6, 1.5),
        p_non_finite=0.0 if random.random() < 0.5 else random.uniform(0.1, 0.9),
        steepness=random.uniform(0.8, 3),
        gap=gap,
    )
    if scenario == "threshold alone":
        # The arm pays at the lowest rate for what it gains at high ones.
        off, on = sensitivity(found, draw_losses(found, random, 4000))
        return World(**{**vars(found), "bump": float((off - on).mean()) * len(rates)})
    return found


def draw_losses(world: World, random: np.random.Generator, n: int) -> Floats:
    """Final losses (depth, arm, rate, seed), NaN where non-finite, of `n` seeds."""
    shape = (len(world.depths), len(ARMS), 1, n)
    theta = world.theta[:, :, None, None] + world.sd * _standard(world, random, shape)
    above = world.rates[:, None] - theta
    base = BASE + 0.4 * np.maximum(world.best - world.rates, 0)
    base = (base + 0.01 * np.maximum(world.rates - world.best, 0))[:, None]
    whole = (len(world.depths), len(ARMS), len(world.rates), n)
    noise = world.noise * (
        0.7 * random.standard_normal((len(world.depths), 1, len(world.rates), n))
        + 0.7 * random.standard_normal(whole)
    )
    if world.shape == "smooth":
        # A line that passes the mark of a degraded loss at the threshold.
        loss = base + np.maximum(world.steepness * above + DEGRADED, 0)
        noise = noise * (1 + 2 / (1 + np.exp(-8 * above)))
    else:
        loss = base + world.jump * (above > 0)
        dies = (random.random((*shape[:2], 1, n)) < world.p_non_finite) & (above > world.sd)
        loss = np.where(dies, np.nan, loss)
    loss = loss + noise
    loss[:, OFF] += world.gap[:, None]
    loss[:, ON, 0] += world.bump
    if world.extra == "bimodal":
        # A first instability that hits either arm in single seeds, as on TinyStories near 1e-2.
        near = np.abs(world.rates - world.best - 0.5) < 0.3
        loss = loss + 0.25 * (random.random(whole) < 0.3) * near[:, None]
    if world.extra == "flips":
        stable = base + noise
        loss = np.where(random.random(whole) < 0.05, np.where(above > 0, stable, loss + 0.8), loss)
    return loss


def _standard(world: World, random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Deviations of thresholds with mean 0 and sd 1, in part common to a seed."""
    n = shape[-1]
    if world.shape == "sharp" or world.shape == "smooth":
        common = random.standard_normal((1, 1, 1, n))
        own = random.standard_normal(shape)
        return np.sqrt(world.shared) * common + np.sqrt(1 - world.shared) * own
    if world.shape == "skewed":
        return random.exponential(1.0, shape) - 1.0
    if world.shape == "heavy tail":
        return random.standard_t(3, shape) / np.sqrt(3)
    return random.uniform(-np.sqrt(3), np.sqrt(3), shape)


def capped(losses: Floats) -> Floats:
    """What a mean counts: the initial loss for a non-finite end."""
    return np.where(np.isnan(losses), INIT_LOSS, np.minimum(losses, INIT_LOSS))


def sensitivity(world: World, losses: Floats) -> Floats:
    """LR sensitivity (arm, depth, seed)."""
    values = capped(losses)
    return np.moveaxis(values.mean(axis=2) - values.min(axis=2), 1, 0)


@dataclass(frozen=True)
class Truth:
    """What a study with endless seeds would find: means, by depth, of a large draw."""

    mean: Floats  # (depth, arm, rate)
    is_mixed: NDArray[np.bool_]  # the same shape: some seeds jump to another loss, others do not
    sensitivity: Floats  # (arm, depth)


def truth(world: World, random: np.random.Generator, n: int = 2000) -> Truth:
    losses = draw_losses(world, random, n)
    values = capped(losses)
    jumps = np.stack([np.isnan(losses), values > values.min(axis=2, keepdims=True) + DEGRADED])
    shares = jumps.mean(axis=-1)
    is_mixed = ((shares > 0.002) & (shares < 0.998)).any(axis=0)
    return Truth(
        values.mean(axis=3),
        is_mixed if world.shape != "smooth" else np.zeros_like(is_mixed),
        sensitivity(world, losses).mean(axis=2),
    )


def tables(worlds: Sequence[World], random: np.random.Generator) -> tuple[Measured, Design]:
    """The worlds as settings of one table; `z_loss` is a millionth of a world's index."""
    frames = [_rows(i, world, random) for i, world in enumerate(worlds)]
    rows = pl.concat(frames).join(_settings(), on=Column.ARM)
    rows = rows.with_columns(
        pl.format("{}-{}-{}-{}-{}", "z_loss", Column.ARM, "n_layer", "peak_lr", "seed").alias(
            Column.TRIAL_ID
        )
    )
    registered = tuple(sorted(set(rows["peak_lr"])))
    series, probes = (pl.DataFrame(schema=SCHEMAS[name]) for name in ("series", "probes"))
    measured = rows.filter(~pl.col("is_missing"))
    return Measured(measured.drop("is_missing"), series, probes), Design(rows, registered)


def _rows(index: int, world: World, random: np.random.Generator) -> pl.DataFrame:
    losses = draw_losses(world, random, world.n_seed)
    missing = (
        random.random(losses.shape) < 0.03
        if world.extra == "missing"
        else np.zeros(losses.shape, bool)
    )
    rates = np.array([float(f"{10**rate:.6g}") for rate in world.rates])
    depth, arm, rate, seed = (axis.reshape(-1) for axis in np.indices(losses.shape))
    flat = losses.reshape(-1)
    died = np.isnan(flat)
    return pl.DataFrame(
        {
            "z_loss": np.full(len(flat), index * 1e-6),
            Column.ARM: np.array(ARMS)[arm],
            "n_layer": np.array(world.depths)[depth],
            "peak_lr": rates[rate],
            "seed": seed,
            Column.FINAL_LOSS: pl.Series(flat, nan_to_null=True),
            Column.NON_FINITE: pl.Series(np.where(died, "loss", "")).replace({"": None}),
            Column.NON_FINITE_STEP: pl.Series(np.where(died, 123, -1)).replace({-1: None}),
            Column.STEPS_DONE: np.where(died, 123, 400),
            "is_missing": missing.reshape(-1),
        }
    )


def _settings() -> pl.DataFrame:
    """What every trial of an arm has in common."""
    text = files("redline.study").joinpath("protocols/nanogpt.toml").read_text("utf-8")
    nested = tomllib.loads(text) | {"protocol": "nanogpt", "device": "cpu", "seed": 0}
    del nested["analysis"]
    nested["train"]["peak_lr"] = 1e-3
    trials: list[tuple[str, Trial]] = []
    for norm in (None, QKNorm()):
        put(nested, "model.qk_norm", norm)
        trials.append(("", Trial.model_validate(nested)))
    varied = (Column.TRIAL_ID, "z_loss", "n_layer", "peak_lr", "seed")
    return (
        planned(trials)
        .drop(varied)
        .with_columns(
            pl.lit("a" * 64).alias(Column.TOKEN_SHA256),
            pl.lit("b" * 64).alias(Column.TOKENIZER_SHA256),
            pl.lit(INIT_LOSS).alias(Column.INIT_LOSS),
            pl.lit(BIGRAM_LOSS).alias(Column.BIGRAM_LOSS),
        )
    )
