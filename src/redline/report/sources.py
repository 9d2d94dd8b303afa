"""Where the trials of a page come from, from the files of the store: (name, value) pairs."""

import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from redline.analysis.comparable import CONTROL, N_LAYER, PEAK_LR
from redline.analysis.findings import Findings
from redline.analysis.summary import N_EXPECTED
from redline.config.analysis import Analysis
from redline.files import UserError, read_json
from redline.store.finished import read_finished
from redline.store.layout import Store
from redline.store.schema import Column

N_NAMED = 8

MACHINE = ("host", "os", "cpu", "n_thread", "executor", "failed_checks")
SOFTWARE = ("redline", "torch", "numpy", "python")
CORPUS = (
    "corpus",
    "licence",
    "token_sha256",
    "tokenizer",
    "n_train_token",
    "n_eval_token",
    "n_document_read",
    "bigram_loss",
)

Pairs = list[tuple[str, str]]


def provenance(store: Store, ids: Sequence[str], token_sha256: Iterable[str]) -> Pairs:
    """The software and machines that trained `ids`, each with its number of trials, and corpora."""
    known = [read_json(path) for i in ids if (path := store.provenance(i)).exists()]
    pairs: Pairs = []
    for title, names in (("Software", SOFTWARE), ("Machine", MACHINE)):
        counted = Counter(_joined(found, names) for found in known)
        pairs += [(title, f"{text} ({_trials(n)})") for text, n in counted.most_common()]
    for name in sorted(set(token_sha256)):
        try:
            manifest = store.corpus(name)
        except UserError as error:
            pairs.append(("Corpus", str(error)))
        else:
            pairs.append(("Corpus", _joined(manifest, CORPUS)))
            pairs.append(("It begins", manifest.get("preview", "")))
    return pairs


def changed_analysis(store: Store, ids: Iterable[str], analysis: Analysis) -> list[str]:
    """A sentence for each study that registered other margins for `ids` than those used now."""
    used = analysis.model_dump(mode="json")
    said: list[str] = []
    for digest in sorted({read_finished(store, trial_id)["study"] for trial_id in ids}):
        registered = _registered(store.root / "studies" / f"{digest}.toml")
        differs = [
            f"{name} {registered.get(name)} then, {value} now"
            for name, value in used.items()
            # What may be left out of a study is not in its file where it was.
            if registered and registered.get(name) != value
        ]
        if differs:
            said.append(
                f"The margins are not those that were registered before training (study {digest}): "
                f"{'; '.join(differs)}."
            )
    return said


def _registered(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))["analysis"]
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError):
        return {}  # nothing is known of it, and the page cannot say that it differs


def facts(found: Findings) -> Pairs:
    """The size of a sweep, for the head of its page."""
    cells = found.cells
    done = found.n_expected - found.missing.height
    counted = {"arms": Column.ARM, "depths": N_LAYER, "peak LRs": PEAK_LR, "settings": CONTROL}
    several = [
        (name, str(n)) for name, column in counted.items() if (n := cells[column].n_unique()) > 1
    ]
    seeds = ("seeds", str(cells[N_EXPECTED].max() or 0))
    return [(f"of {found.n_expected} trials have a result", str(done)), *several, seeds]


def damaged(files: dict[str, tuple[str, ...]]) -> list[str]:
    """A sentence for each trial whose files are not those that were written."""
    return [
        f"Trial {trial_id} is damaged ({', '.join(names)}) and in no number of this page."
        for trial_id, names in files.items()
    ]


def not_of_study(store: Store, ids: Sequence[str]) -> list[str]:
    """A sentence that names the finished trials of the store that are not of this study."""
    others = [i for i in store.ids() if i not in set(ids) and store.finished(i).exists()]
    if not others:
        return []
    more = ", ..." if len(others) > N_NAMED else ""
    named = ", ".join(others[:N_NAMED])
    return [f"{_trials(len(others))} of the store not of this study, in no number: {named}{more}."]


def unknown(rows: pl.DataFrame) -> list[str]:
    """What a table of another tool does not say and the analysis would use."""
    said: list[str] = []
    if rows[Column.INIT_LOSS].is_null().all():
        said.append("The initial loss is not known: a final loss above it counts as it is.")
    if rows[Column.BIGRAM_LOSS].is_null().all():
        said.append(
            "The bigram loss is not known: failed means above the best loss of all arms + margin."
        )
    said.append(
        "A table has no curves and no probes: steps to threshold, attention logits, entropy, "
        "outliers and spikes are not known, and what destabilises a trial is not seen."
    )
    return said


def _joined(found: dict[str, Any], names: Iterable[str]) -> str:
    return ", ".join(f"{name} {found[name]}" for name in names if name in found)


def _trials(n: int) -> str:
    return "1 trial" if n == 1 else f"{n:,} trials"
