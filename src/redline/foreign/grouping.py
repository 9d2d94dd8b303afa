"""Which columns that nobody spoke of keep rows apart.

Two runs that differ in a setting must never be pooled, and what a run measured must not split a
pair. A column of which the options say nothing separates rows if

1. it tells rows apart that nothing else does: among rows of one depth, one setting and the groups
   so far it has more than one value;
2. the arms share it: wherever two arms have runs of one depth, peak LR, seed and setting, the
   values of the one are among those of the other. Losses, times and parameter counts differ there;
3. it is no other name of the seed or the peak LR: where there are two seeds, some value is met with
   two, and the same for the peak LR.

What is left over is named with the reason. A column that a setting and chance agree on (a host with
few values, say) separates too: pairs that it splits are listed as missing, and `--ignore` drops it.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise

import polars as pl

from redline.foreign.cells import spelling

CURVE, PAIR, ARM, SEED, LR, VALUE = "curve", "pair", "arm", "seed", "peak_lr", "value"


class Reason(StrEnum):
    """Why a column with more than one value separates nothing."""

    ASKED = "as --ignore asks"
    RESULT = "what a run says of itself"
    SEED = "another name of the seed"
    PEAK_LR = "another name of the peak LR"
    ARM = "differs between the arms of a pair"
    SAME = "the same within each depth and setting"


def separating(
    rows: pl.DataFrame, columns: Mapping[str, Sequence[str]], settled: Mapping[str, Reason]
) -> tuple[tuple[str, ...], dict[str, Reason]]:
    """The columns that keep rows apart, and why each other one that varies does not.

    `rows` has `arm`, `seed`, `peak_lr` and `curve`, which names depth, setting and groups;
    `columns` holds the cells of each candidate, `settled` those that are decided already.
    """
    keys = rows.with_columns(pl.struct(CURVE, LR, SEED).rank("dense").alias(PAIR))
    groups: list[str] = []
    unused: dict[str, Reason] = {}
    for name, cells in columns.items():
        texts = pl.Series(VALUE, one_spelling(cells))
        if texts.n_unique() == 1:
            continue
        reason = settled.get(name) or _reason(keys.with_columns(texts))
        if reason is None:
            groups.append(name)
            finer = pl.struct(pl.col(CURVE), texts).rank("dense").alias(CURVE)
            keys = keys.with_columns(finer)
        else:
            unused[name] = reason
    return tuple(groups), unused


def one_spelling(cells: Collection[str]) -> list[str]:
    """Cells without spaces around them, equal numbers as the first of them is written."""
    first: dict[object, str] = {}
    known = {cell: first.setdefault(spelling(cell), cell.strip()) for cell in dict.fromkeys(cells)}
    return [known[cell] for cell in cells]


def _reason(rows: pl.DataFrame) -> Reason | None:
    if _most(rows, CURVE, VALUE) == 1:
        return Reason.SAME
    for key, reason in ((SEED, Reason.SEED), (LR, Reason.PEAK_LR)):
        if rows[key].n_unique() > 1 and _most(rows, VALUE, key) == 1:
            return reason
    return None if _arms_share_it(rows) else Reason.ARM


def _most(rows: pl.DataFrame, within: str, key: str) -> int:
    """The largest number of values of `key` that are met with one value of `within`."""
    return rows.group_by(within).agg(pl.col(key).n_unique())[key].max()  # pyright: ignore


def _arms_share_it(rows: pl.DataFrame) -> bool:
    pairs: dict[int, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for pair, arm, value in rows.select(PAIR, ARM, VALUE).unique().iter_rows():
        pairs[pair][arm].add(value)
    return all(
        few <= many
        for arms in pairs.values()
        for few, many in pairwise(sorted(arms.values(), key=len))
    )
