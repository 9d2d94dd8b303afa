"""From a study to its trials: ordered, unique, each one validated."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from typing import Any

from pydantic import ValidationError

from redline.config.edit import unflatten
from redline.config.trial import Trial
from redline.files import UserError
from redline.study.axes import refuse_twins
from redline.study.fields import field_value, label, read_fields
from redline.study.problems import Problems, sentence
from redline.study.spec import Study

OUTER = ("seed", "model.n_layer")
INNER = ("train.peak_lr", "model.qk_norm")
KEY = ("model.n_layer", "train.peak_lr", "model.qk_norm", "seed")
"""What an error about a trial always names."""


def expand(
    study: Study, device: str, points: Sequence[Mapping[str, Any]] = ()
) -> tuple[Trial, ...]:
    """The trials of a study, then those of extra `points`, without repetition.

    Seeds are outermost and arms innermost, so that a prefix of the list is balanced and the arms of
    a pair are neighbours. `device` decides `device = "auto"`. A point maps fields to values and is
    one trial; the fields that it does not name come from the base.

    Raises:
        UserError: a point names an unknown field or value, or a combination is invalid.
    """
    base = study.pinned(device).fields
    changes = [*_grid(study), *_read(points, study.source)]
    # A dictionary keeps the first of equal trials, and the order.
    trials = tuple(dict.fromkeys(_trial(base, change, study.source) for change in changes))
    refuse_twins(trial.train.peak_lr for trial in trials)
    return trials


def _grid(study: Study) -> list[dict[str, Any]]:
    """Every combination as the changes that it makes to the base."""
    variations: list[Mapping[str, Any]] = [{}, *chain.from_iterable(study.around_base.values())]
    grid = [{**point, **change} for change in variations for point in _product(study.axes)]
    for block in study.extra_axes:
        grid += _product({**study.axes, **block})
    rank = {seed: n for n, seed in enumerate(dict.fromkeys(point.get("seed") for point in grid))}
    return sorted(grid, key=lambda point: rank[point.get("seed")])


def _product(axes: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    between = [path for path in axes if path not in OUTER + INNER]
    paths = [path for path in (*OUTER, *between, *INNER) if path in axes]
    for values in product(*(axes[path] for path in paths)):
        yield dict(zip(paths, values, strict=True))


def _read(points: Sequence[Mapping[str, Any]], source: str) -> list[dict[str, Any]]:
    problems = Problems(source)
    read = [
        read_fields(point, f"points.{index}", problems, field_value)
        for index, point in enumerate(points)
    ]
    problems.raise_if_any()
    return read


def _trial(base: Mapping[str, Any], change: Mapping[str, Any], source: str) -> Trial:
    fields = {**base, **change}
    try:
        return Trial.model_validate(unflatten(fields))
    except ValidationError as error:
        named = [path for path in dict.fromkeys((*KEY, *change)) if path in fields]
        key = ", ".join(f"{path} = {label(fields[path])}" for path in named)
        raise UserError(f"{source}: the trial with {key}: {sentence(error, depth=0)}") from None
