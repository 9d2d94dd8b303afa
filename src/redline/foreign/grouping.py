"""Which columns that nobody spoke of keep rows apart.

Two runs that differ in a setting must never be pooled, and what a run measured must not split a
pair. A column of which the options say nothing separates rows if

1. it tells rows apart that nothing else does: among rows of one depth, one setting and the groups
   so far it has more than one value;
2. the arms share it: wherever two arms have runs of one depth, peak LR, seed and setting, the
   values of the one are among those of the other. Losses, times and parameter counts differ there;
3. it is no other name of the run, the seed or the peak LR: some value is met in two rows, with two
   seeds where there are two, and with two peak LRs where there are two.

What is left over is named with the reason. A column that a setting and chance agree on (a host with
few values, say) separates too: pairs that it splits are listed as missing, and `--ignore` drops it.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise

import polars as pl

from redline.foreign.cells import spelling
from redline.store.schema import GROUP_PREFIX, Column

SEED, LR = "seed", "peak_lr"
_VALUE = "the cells of one column"


class Reason(StrEnum):
    """Why a column with more than one value separates nothing."""

    ASKED = "as --ignore asks"
    RESULT = "how a run went"
    RUN = "another value in every row"
    SEED = "each value has one seed"
    PEAK_LR = "each value has one peak LR"
    ARM = "differ between the arms of a pair"
    SAME = "the same within each depth and setting"


def separating(
    rows: pl.DataFrame,
    curve: Sequence[str],
    columns: Mapping[str, Sequence[str]],
    settled: Mapping[str, Reason],
) -> tuple[tuple[str, ...], dict[str, Reason]]:
    """The columns that keep rows apart, and why each other one that varies does not.

    `rows` has `arm`, `seed`, `peak_lr` and the columns of `curve`: depth, setting and groups.
    `columns` holds the cells of each candidate, `settled` those that are decided already.
    """
    pair = [*curve, LR, SEED]
    finer = list(curve)
    groups: list[str] = []
    unused: dict[str, Reason] = {}
    for name, cells in columns.items():
        n_value = len(set(cells))
        if n_value == 1:
            continue
        reason = settled.get(name) or (Reason.RUN if n_value == len(cells) else None)
        if reason is None:
            texts = pl.Series(_VALUE, one_spelling(cells))
            reason = _reason(rows.with_columns(texts), finer, pair)
        if reason is None:
            groups.append(name)
            finer.append(f"{GROUP_PREFIX}{name}")
            rows = rows.with_columns(pl.Series(finer[-1], one_spelling(cells)))
        else:
            unused[name] = reason
    return tuple(groups), unused


def one_spelling(cells: Collection[str]) -> list[str]:
    """Cells without spaces around them, equal numbers as the first of them is written."""
    first: dict[object, str] = {}
    known = {cell: first.setdefault(spelling(cell), cell.strip()) for cell in dict.fromkeys(cells)}
    return [known[cell] for cell in cells]


def _reason(rows: pl.DataFrame, curve: Sequence[str], pair: Sequence[str]) -> Reason | None:
    if _most(rows, curve, _VALUE) == 1:
        return Reason.SAME
    for key, reason in ((SEED, Reason.SEED), (LR, Reason.PEAK_LR)):
        if rows[key].n_unique() > 1 and _most(rows, [_VALUE], key) == 1:
            return reason
    return None if _arms_share_it(rows, pair) else Reason.ARM


def _most(rows: pl.DataFrame, within: Sequence[str], key: str) -> int:
    """The largest number of values of `key` that are met within one group of rows."""
    found = rows.group_by(within).agg(pl.col(key).n_unique().alias("n")).get_column("n").max()
    assert isinstance(found, int)
    return found


def _arms_share_it(rows: pl.DataFrame, pair: Sequence[str]) -> bool:
    pairs: dict[tuple[object, ...], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for *key, arm, value in rows.select(*pair, Column.ARM, _VALUE).unique().iter_rows():
        pairs[tuple(key)][arm].add(value)
    return all(
        few <= many
        for arms in pairs.values()
        for few, many in pairwise(sorted(arms.values(), key=len))
    )
