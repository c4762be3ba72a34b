"""`supported_scorers`: the scorers that the rows of an evaluation set can feed, and why the others are left out.

Which scorer needs what is the catalogue's knowledge (metrics/catalog.py) and, for ours, the scorers' own; how many rows
have it is the report's. Here stands only what mlflow asks for beside the rows: arguments, a judge model, a run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.metrics.catalog import Metric
from agent_eval_schema.metrics.support import Support, metrics_of
from agent_eval_schema.runtime.progress import notebook
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.ces_turns import report_on_rows
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.validate import check_source

if TYPE_CHECKING:
    from mlflow.genai.scorers import Scorer


OURS = "agent_eval_schema"

ARGUMENTS = {
    "Guidelines": "guidelines",
    "ConversationalGuidelines": "guidelines",
    "RegexMatch": "pattern",
    "ResponseLength": "min_length or max_length",
    "TrajectorySingleToolUse": "tool_name",
}
"""The scorers that cannot be made without an argument that no row holds."""


class ScorerLine(NamedTuple):
    """What `supported_scorers` says of one scorer. `rows` counts the valid rows that hold all that it reads (an empty
    list does not count); `why_left_out` is "" if it is included."""

    scorer: str
    system: str
    rows: int
    total: int
    included: bool
    why_left_out: str


class SupportedScorers(list["Scorer"]):
    """A list for `mlflow.genai.evaluate(scorers=...)`; `table` has a line for every scorer, left out or not."""

    def __init__(self, scorers: Iterable[Scorer], lines: Iterable[ScorerLine]) -> None:
        super().__init__(scorers)
        self._lines = tuple(lines)

    @property
    def table(self) -> pd.DataFrame:
        """scorer, system (mlflow, or ours), rows that can feed it, total, included, why_left_out."""
        return pd.DataFrame(self._lines, columns=list(ScorerLine._fields))


def supported_scorers(data: Any, *, model: str | None = None) -> SupportedScorers:
    """The scorers of mlflow, and ours, that at least one row can feed, ready for `mlflow.genai.evaluate`.

    Parameters
    ----------
    data
        What `validate_eval_set` takes, or its Report; of files of CES, their turns.
    model
        The judge model that mlflow's judges ask, as mlflow names it (`"openai:/gpt-4o"`). Without one they are left
        out. mlflow 3.17 asks OpenAI, and servers that speak like it, with no package beside itself (OPENAI_API_KEY,
        and OPENAI_BASE_URL for another address); 3.3 to 3.5 need the package openai. For providers that mlflow does
        not know, install litellm. mlflow 3.17 also fetches a list of models' prices from the network, unless
        MLFLOW_MODEL_CATALOG_URI is set to nothing, and asks a server that fails eleven times, over three minutes.

    Returns
    -------
    SupportedScorers
        A list of mlflow scorers. A row that cannot feed one of them is skipped: it gets no score and no error, and
        a rationale that says what it lacks. `table` says of each scorer how many rows can feed it, or why it was left
        out. To add scorers of your own: `[*supported_scorers(data), mine]`.

    Raises
    ------
    EvalSetError
        mlflow 3.3 or newer is not installed, or the data cannot be read as a table.
    """
    from agent_eval_schema.integrations.mlflow.scorers import SCORERS

    report = report_on_rows(data if isinstance(data, Report) else check_source(open_source(data), screen=notebook()))
    ours = [(Metric(OURS, kind.__name__, kind.needs), kind) for kind in SCORERS]
    theirs = [(metric, _builtin(metric.name)) for metric in metrics_of("mlflow")]
    found = [_choose(metric, kind, report, model) for metric, kind in [*theirs, *ours]]
    return SupportedScorers([s for s, _ in found if s is not None], [line for _, line in found])


def _builtin(name: str) -> type[Scorer] | None:
    import mlflow.genai.scorers

    return getattr(mlflow.genai.scorers, name, None)


def _choose(
    metric: Metric, kind: type[Scorer] | None, report: Report, model: str | None
) -> tuple[Scorer | None, ScorerLine]:
    """The scorer, or None, and its line of the table."""
    support = report.support_of(metric)
    scorer, why = None, _reason(metric, kind, support, model)
    if kind is not None and not why:
        scorer, why = _make(metric, kind, report, model)
    line = ScorerLine(metric.name, metric.system, support.supported, support.total, scorer is not None, why)
    return scorer, line


def _reason(metric: Metric, kind: type[Scorer] | None, support: Support, model: str | None) -> str:
    """Why a scorer is left out before it is made, or ""."""
    if kind is None:
        import mlflow

        return f"mlflow {mlflow.__version__} does not have it"
    if metric.name in ARGUMENTS:
        return f"needs {ARGUMENTS[metric.name]}: make it yourself"
    if not support.supported:
        return f"no row can feed it; most lack {support.unlock}" if support.unlock else "there is no valid row"
    return "needs a judge: name one with model=" if metric.judged and model is None else ""


def _make(metric: Metric, kind: type[Scorer], report: Report, model: str | None) -> tuple[Scorer | None, str]:
    from agent_eval_schema.integrations.mlflow.guarded import Guarded
    from agent_eval_schema.integrations.mlflow.scorers import RowScorer

    arguments: dict[str, Any] = {"model": model} if metric.judged else {}
    try:
        scorer = kind(**arguments)
    except Exception as error:  # mlflow's own conditions: a platform, a package, the form of the model's name
        return None, f"mlflow cannot make it: {visible(str(error).splitlines()[0])}"
    if isinstance(scorer, RowScorer):
        return scorer, ""
    if getattr(scorer, "is_session_level_scorer", False):
        # It is handed sessions, not rows, and mlflow groups only the rows that have one.
        allowed = report.outputs == "provided"
        return (scorer, "") if allowed else (None, "scores sessions that were recorded, and these are yet to be run")
    return Guarded(scorer, metric), ""
