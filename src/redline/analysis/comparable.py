"""Which trials may be compared: each there once, complete in its keys, and named by its setting.

Trials are comparable when they differ in nothing but arm, depth, peak LR and seed. Everything else,
the token hash, device and precision included, is the *setting*, and no number pools two settings.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import polars as pl

from redline.config.edit import field_paths, value_at
from redline.config.identity import LOCATORS
from redline.config.trial import Trial
from redline.files import UserError
from redline.store.schema import GROUP_PREFIX, Column

N_LAYER, PEAK_LR, SEED = "n_layer", "peak_lr", "seed"
CONTROL = "control"
N_COPY = "n_copy"
PLAIN = "off"
"""The arm without the intervention, with which every other arm is compared."""

DEPTH_KEY = (CONTROL, N_LAYER)
ARM_KEY = (CONTROL, N_LAYER, Column.ARM)
CELL_KEY = (*ARM_KEY, PEAK_LR)
TRIAL_KEY = (*CELL_KEY, SEED)

HASHES = (Column.TOKEN_SHA256, Column.TOKENIZER_SHA256)
SETTING_PATHS = tuple(
    path
    for path in field_paths()
    if path not in LOCATORS | {"model.qk_norm", "model.n_layer", "train.peak_lr", "seed"}
)
SETTING = tuple(path.rpartition(".")[2] for path in SETTING_PATHS)

MEASURED = (
    Column.INIT_LOSS,
    Column.FINAL_LOSS,
    Column.STEPS_DONE,
    Column.NON_FINITE,
    Column.NON_FINITE_STEP,
    Column.BIGRAM_LOSS,
)
KEYS = (Column.TRIAL_ID, Column.ARM, N_LAYER, PEAK_LR, SEED)
NEVER_NULL = (
    *KEYS,
    *HASHES,
    "device",
    "precision",
    "n_step",
    "warmup_fraction",
    Column.STEPS_DONE,
    Column.INIT_LOSS,
    Column.BIGRAM_LOSS,
)
N_NAMED = 5


def comparable(trials: pl.DataFrame) -> pl.DataFrame:
    """The trials with `control`, the name of their setting, and `n_copy`, the rows they stand for.

    `control` holds the fields in which the settings of this table differ; it is empty when there is
    one setting. Exact copies of a row collapse. Rows with an `origin` come from another tool: they
    need their keys and a final loss, and an initial loss only where they are non-finite.

    Raises:
        UserError: a column or a key is missing, a loss to compare with is not finite, or two rows
            of one trial disagree.
    """
    needed = dict.fromkeys((*NEVER_NULL, *SETTING, *MEASURED))
    if absent := [name for name in needed if name not in trials.columns]:
        raise UserError(f"the table of trials lacks the column {', '.join(absent)}")
    for name in KEYS if Column.ORIGIN in trials.columns else NEVER_NULL:
        refuse(trials.filter(pl.col(name).is_null()), f"{name} is missing")
    lost = pl.col(Column.NON_FINITE).is_not_null() | ~pl.col(Column.FINAL_LOSS).is_finite()
    uncounted = lost & pl.col(Column.INIT_LOSS).is_null()
    refuse(
        trials.filter(uncounted),
        "non-finite and without init_loss, the loss that a non-finite trial counts at,",
    )
    refuse(trials.filter(~pl.col(Column.BIGRAM_LOSS).is_finite()), "bigram_loss is not finite")
    # A model that is non-finite before its first step is an observation, and has no initial loss.
    begun = trials.filter(pl.col(Column.NON_FINITE_STEP).fill_null(-1) != 0)
    refuse(begun.filter(~pl.col(Column.INIT_LOSS).is_finite()), "init_loss is not finite")
    name = setting_name(trials, setting_fields(trials, hashes=True))
    return _once(trials.with_columns(name.alias(CONTROL)))


def setting_fields(frame: pl.DataFrame, *, hashes: bool) -> list[str]:
    """The columns that make a setting; those by which another tool's rows are grouped among them.

    A trial that has not run yet has no `hashes`.
    """
    groups = [name for name in frame.columns if name.startswith(GROUP_PREFIX)]
    return [*SETTING, *(HASHES if hashes else ()), *groups]


def setting_name(frame: pl.DataFrame, fields: Sequence[str]) -> pl.Expr:
    """`field=value` for the fields that differ within the frame: equal text, equal setting."""
    parts: list[pl.Expr] = []
    for name in fields:
        if frame[name].n_unique() > 1:
            text = pl.col(name).cast(pl.String).fill_null("unknown")
            shown = text.str.slice(0, 12) if name in HASHES else text
            parts.append(pl.format(f"{name.removeprefix(GROUP_PREFIX)}={{}}", shown))
    return pl.concat_str(parts, separator=", ") if parts else pl.lit("")


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Setting names without what most settings share; a setting that has nothing else is `base`.

    Two settings never get one name: of the values of a field only one can be that of the most.
    """
    settings = set(names)
    counts = Counter(part for name in settings for part in name.split(", "))
    common = {part for part, n in counts.items() if 2 * n > len(settings)}
    rest = {name: [part for part in name.split(", ") if part not in common] for name in settings}
    return {name: ", ".join(parts) or ("base" if name else "") for name, parts in rest.items()}


def planned(expected: Sequence[tuple[str, Trial]]) -> pl.DataFrame:
    """One row for each expected (trial id, trial), in the columns of the table of trials."""
    return pl.DataFrame(
        [
            {
                Column.TRIAL_ID: trial_id,
                Column.ARM: trial.model.arm,
                N_LAYER: trial.model.n_layer,
                PEAK_LR: trial.train.peak_lr,
                SEED: trial.seed,
                **dict(zip(SETTING, (value_at(trial, p) for p in SETTING_PATHS), strict=True)),
            }
            for trial_id, trial in expected
        ],
        infer_schema_length=None,
    )


def refuse(rows: pl.DataFrame, why: str) -> None:
    """Raise a `UserError` that names the rows, if there are any."""
    if rows.height:
        names = [trial_name(row) for row in rows.head(N_NAMED).iter_rows(named=True)]
        more = f" and {rows.height - N_NAMED} more" if rows.height > N_NAMED else ""
        raise UserError(f"{why} in {rows.height} of the trials: {'; '.join(names)}{more}")


def trial_name(row: dict[str, object]) -> str:
    """The full key of a trial, so that a message needs no look-up."""
    fields = ", ".join(f"{name} {row[name]}" for name in (N_LAYER, PEAK_LR, SEED))
    return f"{row[Column.ARM]}, {fields} ({row[Column.TRIAL_ID]})"


def _once(trials: pl.DataFrame) -> pl.DataFrame:
    distinct = trials.group_by([*TRIAL_KEY, *MEASURED], maintain_order=True).agg(
        pl.all().first(), pl.len().alias(N_COPY)
    )
    refuse(distinct.filter(pl.struct(TRIAL_KEY).is_duplicated()), "one trial has different results")
    return distinct
