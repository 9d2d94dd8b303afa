"""Finished trials as three flat tables, derived from the files and kept as Parquet.

A load reads only the files of trials that are new or changed since the last one; if there are any,
it writes all three tables anew. Everything under `STORE/tables` may be deleted at any time and
comes back the same. Non-finite numbers are native floats here; null means missing and nothing else.
"""

import io
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
from filelock import FileLock
from pydantic import BaseModel

from redline.config.edit import field_paths, value_at
from redline.config.identity import LOCATORS, Tokens, canonical
from redline.config.trial import Trial
from redline.files import UserError, read_json, read_lines, write_atomic, write_json
from redline.store.finished import damaged_files, read_finished
from redline.store.layout import Store
from redline.store.schema import (
    ATTENTION_COLUMNS,
    RESIDUAL_COLUMNS,
    RESULT_COLUMNS,
    SERIES_COLUMNS,
    Column,
)

TEXT, INTEGER, NUMBER, TRUTH = pl.String(), pl.Int64(), pl.Float64(), pl.Boolean()

Row = dict[str, Any]
Schema = dict[str, pl.DataType]


@dataclass(frozen=True)
class Tables:
    """The finished trials among `ids`, in the order of `ids`; frames are read when asked for.

    `damaged` maps trials whose files are not those that were written to the names of these files:
    they are in no table.
    """

    store: Store
    ids: tuple[str, ...]
    damaged: dict[str, tuple[str, ...]]

    @cached_property
    def trials(self) -> pl.DataFrame:
        """One row a trial: arm, every scientific field by its own name, token hashes, result."""
        return self._frame("trials")

    @cached_property
    def series(self) -> pl.DataFrame:
        """One row a (trial, step), step 0 being the state before training."""
        return self._frame("series")

    @cached_property
    def probes(self) -> pl.DataFrame:
        """One row a (trial, step, layer); layer `n_layer` feeds the final norm: no attention."""
        return self._frame("probes")

    def _frame(self, name: str) -> pl.DataFrame:
        wanted = pl.DataFrame({Column.TRIAL_ID: self.ids}, schema={Column.TRIAL_ID: TEXT})
        rows = pl.read_parquet(_parquet(self.store, name))
        return wanted.join(rows, on=Column.TRIAL_ID, how="inner", maintain_order="left_right")


def load(store: Store, ids: list[str]) -> Tables:
    """Bring the tables up to date with the finished trials among `ids` and open them."""
    store.tables.mkdir(exist_ok=True)
    with FileLock(store.tables / "tables.lock"):
        current = _known(store)
        known = current or {}
        stamps = {trial_id: _stamp(store, trial_id) for trial_id in ids}
        changed = {name: stamp for name, stamp in stamps.items() if stamp != known.get(name)}
        present = [trial_id for trial_id, stamp in changed.items() if stamp is not None]
        damaged = {trial_id: damaged_files(store, trial_id) for trial_id in present}
        new = {name: stamp for name, stamp in changed.items() if damaged.get(name) == ()}
        kept = {name: stamp for name, stamp in known.items() if name not in changed}
        if current is None or new or kept.keys() != known.keys():
            _write(store, kept, [_rows(store, trial_id) for trial_id in new])
            # Written last: after a kill before this line the same trials are read again.
            write_json(_sources(store), dict(sorted((kept | new).items())))
    in_tables = kept | new
    return Tables(
        store,
        tuple(trial_id for trial_id in ids if trial_id in in_tables),
        {trial_id: files for trial_id, files in damaged.items() if files},
    )


def _rows(store: Store, trial_id: str) -> dict[str, list[Row]]:
    trial, tokens = store.read_trial(trial_id)
    name = {Column.TRIAL_ID: trial_id}
    probes = read_lines(store.probes(trial_id))
    return {
        "trials": [name | _trial_row(store, trial_id, trial, tokens)],
        "series": [name | row for row in read_lines(store.series(trial_id))],
        "probes": [name | row for probe in probes for row in _layer_rows(probe)],
    }


def _trial_row(store: Store, trial_id: str, trial: Trial, tokens: Tokens) -> Row:
    fields = {_leaf(path): value_at(trial, path) for path in _scientific_paths()}
    components = {
        name: canonical(value.model_dump())
        for name, value in fields.items()
        if isinstance(value, BaseModel)
    }
    corpus = store.corpus(tokens.token_sha256)
    return (
        {Column.ARM: trial.model.arm, Column.BIGRAM_LOSS: corpus["bigram_loss"]}
        | fields
        | components
        | tokens.model_dump()
        | read_finished(store, trial_id)["result"]
    )


def _layer_rows(probe: Row) -> list[Row]:
    final: Row = {}
    layers: list[Row] = [*probe["layers"], final]
    residuals: list[Row] = probe["residual"]
    step = {Column.STEP: probe[Column.STEP], Column.LOG_Z_SQ: probe[Column.LOG_Z_SQ]}
    return [
        step | {Column.LAYER: layer} | attention | residual
        for layer, (attention, residual) in enumerate(zip(layers, residuals, strict=True))
    ]


def _write(store: Store, kept: Iterable[str], added: list[dict[str, list[Row]]]) -> None:
    for name, schema in SCHEMAS.items():
        frame = _to_frame([row for trial in added for row in trial[name]], schema)
        if kept:
            old = pl.read_parquet(_parquet(store, name))
            frame = pl.concat([old.filter(pl.col(Column.TRIAL_ID).is_in(list(kept))), frame])
        keys = [key for key in (Column.TRIAL_ID, Column.STEP, Column.LAYER) if key in schema]
        content = io.BytesIO()
        frame.sort(keys).write_parquet(content)
        write_atomic(_parquet(store, name), content.getvalue())


def _to_frame(rows: list[Row], schema: Schema) -> pl.DataFrame:
    columns = {
        name: pl.Series(name, [_native(row.get(name), dtype) for row in rows], dtype)
        for name, dtype in schema.items()
    }
    return pl.DataFrame(columns)


def _native(value: Any, dtype: pl.DataType) -> Any:
    # Our JSON holds non-finite numbers as "nan", "inf" and "-inf", which float() understands.
    return float(value) if dtype == NUMBER and value is not None else value


def _known(store: Store) -> dict[str, int] | None:
    """Trial -> stamp of what stands in the tables; None if they must be built anew."""
    try:
        known = read_json(_sources(store))
        for name, schema in SCHEMAS.items():
            if pl.read_parquet_schema(_parquet(store, name)) != schema:
                return None
    except (FileNotFoundError, UserError, pl.exceptions.PolarsError):
        return None
    return known


def _stamp(store: Store, trial_id: str) -> int | None:
    """The latest change of a trial's files; None if it is not finished."""
    if not store.finished(trial_id).exists():
        return None
    files = (store.finished, store.trial, store.series, store.probes)
    paths = [file(trial_id) for file in files]
    return max(path.stat().st_mtime_ns if path.exists() else 0 for path in paths)


def _parquet(store: Store, name: str) -> Path:
    return store.tables / f"{name}.parquet"


def _sources(store: Store) -> Path:
    return store.tables / "sources.json"


def _scientific_paths() -> tuple[str, ...]:
    return tuple(path for path in field_paths() if path not in LOCATORS)


def _leaf(path: str) -> str:
    return path.rpartition(".")[2]


def _dtype(path: str) -> pl.DataType:
    kind: Any = Trial
    for name in path.split("."):
        kind = kind.model_fields[name].annotation
    return {int: INTEGER, float: NUMBER, bool: TRUTH}.get(kind, TEXT)


def _trials_schema() -> Schema:
    numbers = (Column.INIT_LOSS, Column.FINAL_LOSS)
    integers = (Column.STEPS_DONE, Column.NON_FINITE_STEP)
    result: Schema = {
        name: NUMBER if name in numbers else INTEGER if name in integers else TEXT
        for name in RESULT_COLUMNS
    }
    return (
        {Column.TRIAL_ID: TEXT, Column.ARM: TEXT}
        | {_leaf(path): _dtype(path) for path in _scientific_paths()}
        | {Column.TOKEN_SHA256: TEXT, Column.TOKENIZER_SHA256: TEXT}
        | result
        | {Column.BIGRAM_LOSS: NUMBER}
    )


def _series_schema() -> Schema:
    numbers: Schema = dict.fromkeys(SERIES_COLUMNS, NUMBER)
    return {Column.TRIAL_ID: TEXT} | numbers | {Column.STEP: INTEGER}


def _probes_schema() -> Schema:
    keys: Schema = {Column.TRIAL_ID: TEXT, Column.STEP: INTEGER, Column.LAYER: INTEGER}
    measured = (*ATTENTION_COLUMNS, *RESIDUAL_COLUMNS, Column.LOG_Z_SQ)
    return keys | dict.fromkeys(measured, NUMBER) | {Column.MASSIVE: TRUTH}


SCHEMAS = {
    "trials": _trials_schema(),
    "series": _series_schema(),
    "probes": _probes_schema(),
}
"""Table -> column -> type. A stored table of another schema is built anew."""
