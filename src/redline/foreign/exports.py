"""The exports of W&B and MLflow, recognised by the names of their columns.

- W&B, the runs table saved as CSV: `Name`, `State`, `Notes`, `User`, `Tags`, `Created`, `Runtime`,
  `Sweep`, then the configuration, then the summary, each under its own name. Some have `Agent`,
  `ID` and more between; `Name`, `State`, `Created` and `Runtime` are taken as the sign.
- W&B, runs of `wandb.Api()` as JSON Lines: `name`, `state`, and objects `config` and `summary`; or
  as one flat table of `name`, `state`, both dicts and the summary's own `_timestamp`.
- MLflow, `mlflow.search_runs().to_csv()` or `mlflow experiments csv`: `run_id`, `experiment_id`,
  `status`, `artifact_uri`, `start_time`, `end_time`, `metrics.*`, `params.*`, `tags.*`.

Only a finished run has a result. A W&B run is `finished`, `crashed`, `failed`, `killed`, `running`,
`preempted` or `pending`, one of MLflow `FINISHED`, `FAILED`, `KILLED`, `RUNNING` or `SCHEDULED`;
whatever is not the first of these counts as not finished.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from redline.files import UserError

_WANDB_FACTS = frozenset(
    {
        *(
            "name",
            "state",
            "id",
            "Name",
            "State",
            "Notes",
            "User",
            "Tags",
            "Created",
            "Runtime",
            "Agent",
            "ID",
            "Updated",
        ),
        *("End Time", "Start Time", "Hostname", "Host", "Job Type", "Description", "Commit"),
        *("GPU Type", "GPU Count", "CPU Count", "Python version", "OS", "Logs"),
    }
)
"""Columns of W&B's own that say how a run went. `Group` and `Sweep` may be a setting."""

_HISTORY_MEND = "it has a row a step, and a row a run is needed: save the runs table instead"


@dataclass(frozen=True)
class Export:
    """The tool that wrote a table: the column of states, and those that may name a run."""

    tool: str
    state: str
    finished: str
    run_names: tuple[str, ...]
    settings: str
    """What the names of settings begin with; empty where they have no prefix."""

    def may_be_setting(self, column: str) -> bool:
        """Whether a column can say what was run; the others say how it went."""
        if self.settings:
            return column.startswith(self.settings)
        return column not in _WANDB_FACTS and not column.startswith("_")


WANDB = Export("W&B", "State", "finished", ("Name", "ID"), "")
WANDB_API = Export("W&B", "state", "finished", ("name", "id"), "config.")
WANDB_FLAT = Export("W&B", "state", "finished", ("name", "id"), "")
MLFLOW = Export(
    "MLflow", "status", "FINISHED", ("tags.mlflow.runName", "run_name", "run_id"), "params."
)


def recognised(name: str, header: Sequence[str]) -> Export | None:
    """The tool that wrote the file `name`, or None.

    Raises:
        UserError: it is an export with a row a step, or one that hides its settings in one cell.
    """
    names = set(header)
    if names >= {"Name", "State", "Created", "Runtime"}:
        return WANDB
    if names >= {"run_id", "experiment_id", "status", "artifact_uri"}:
        return MLFLOW
    if names >= {"name", "config", "summary"}:
        raise UserError(
            f"{name}: a W&B export whose columns config and summary hold a Python dict a cell; "
            "write one JSON object a line, with run.name, run.state, and dict(run.config) as "
            "config and run.summary._json_dict as summary"
        )
    if names >= {"name", "state"} and any(column.startswith("config.") for column in header):
        return WANDB_API
    if names >= {"name", "state", "_timestamp"}:
        return WANDB_FLAT
    if names >= {"_step", "_timestamp"} and "name" not in names:
        raise UserError(f"{name}: this is the history of a W&B run; {_HISTORY_MEND}")
    if any(column.endswith("__MIN") for column in header) and "Step" in names:
        raise UserError(f"{name}: this is the data of a W&B chart; {_HISTORY_MEND}")
    return None
