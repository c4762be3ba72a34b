"""The numbers and examples of a profile, as plain values; text, JSON and HTML are drawn from them."""

from __future__ import annotations

from msgspec import Struct


class RowExample(Struct, frozen=True):
    """A row by its position, its ID, its question and, where it matters, its ground truth; texts are shortened."""

    row: int
    request_id: str | None = None
    question: str | None = None
    truth: str | None = None


class MetricPower(Struct, frozen=True):
    """How exact a metric is on its rows, and which difference between two versions a run detects at 80 % power.

    `unit` is "points" for a score from 0 to 1, whose numbers are shares of 1, and "value" for any other number. Numbers
    are None where they would mean nothing; `note` gives the reason. `rows_needed` are those for a difference of 5, 3
    and 1 points (percent of the mean, for a value), of two versions on the same rows.
    """

    system: str
    metric: str
    unit: str
    rows: int
    distinct: int
    design_effect: float
    effective_rows: float
    mean: float | None
    deviation: float | None
    measured: bool
    half_width: float | None
    unpaired: float | None
    paired: float | None
    rows_needed: tuple[int, ...] | None
    note: str


def short_name(metric: str) -> str:
    """The telling part of a metric's name."""
    return next((part for part in reversed(metric.split("/")) if part != "rating"), metric)


class DuplicateGroup(Struct, frozen=True):
    """Rows that ask the same (`kind` is "exact"), or are near duplicates ("near")."""

    kind: str
    rows: int
    examples: tuple[RowExample, ...]


class Duplicates(Struct, frozen=True):
    """Repeated questions: `rows` that have one, `distinct` of them, the rows that repeat an earlier question and
    those that are near duplicates, the largest groups, and pairs with the same request and another ground truth
    (AE902).
    """

    rows: int
    distinct: int
    exact: int
    near: int
    threshold: float
    group_count: int
    groups: tuple[DuplicateGroup, ...]
    conflict_count: int
    conflicts: tuple[tuple[RowExample, RowExample], ...]


class Leak(Struct, frozen=True):
    """Rows of which the question or the ground truth is in another place: `source` names it, `kind` describes it."""

    source: str
    kind: str
    rows: int
    examples: tuple[RowExample, ...]


class ToolCoverage(Struct, frozen=True):
    """The rows whose agent was offered a tool, which expect it, and which call it."""

    tool: str
    offered: int
    expected: int
    called: int


class DocumentCoverage(Struct, frozen=True):
    """The rows that expect a document, and those that retrieved it."""

    doc_uri: str
    expected: int
    retrieved: int


class Documents(Struct, frozen=True):
    """Numbers of distinct documents, and the most frequent ones; `unknown_rows` expect one that is not in the given
    list (None without a list)."""

    expected: int
    retrieved: int
    never_retrieved: int
    rows_expecting: int
    top: tuple[DocumentCoverage, ...]
    unknown_rows: int | None


class Counted(Struct, frozen=True):
    """A value and the number of rows that have it."""

    value: str
    rows: int


class Breakdown(Struct, frozen=True):
    """The rows per value of something; `thin` values have too few rows to be scored by themselves."""

    name: str
    values: int
    top: tuple[Counted, ...]
    thin: tuple[Counted, ...]


class Cluster(Struct, frozen=True):
    """Questions with words in common: their number, the most telling words, one of them."""

    rows: int
    terms: tuple[str, ...]
    example: RowExample


class Coverage(Struct, frozen=True):
    """What the rows cover."""

    tools: tuple[ToolCoverage, ...]
    documents: Documents
    breakdowns: tuple[Breakdown, ...]
    sessions: int
    days: int
    median_words: float | None
    longest_words: int | None
    min_rows: int
    clusters: tuple[Cluster, ...]
    cluster_note: str


class Balance(Struct, frozen=True):
    """How even the ground truth is, and of which time. `top_truth` is the most frequent one, `shared_guidelines` are
    those of every row that has guidelines; `first` and `last` are ISO dates."""

    truths: int
    distinct_truths: int
    top_truth_rows: int
    top_truth: str | None
    guideline_rows: int
    shared_guidelines: tuple[str, ...]
    first: str | None
    last: str | None


class MetricCost(Struct, frozen=True):
    """The calls of a judge that a metric needs, with their tokens and, if prices are given, what they cost."""

    system: str
    metric: str
    calls: int
    input_tokens: int
    output_tokens: int
    money: float | None


class Cost(Struct, frozen=True):
    """What one evaluation needs: calls of judges, of the agent, tokens, money, and minutes at the given rate."""

    metrics: tuple[MetricCost, ...]
    calls: int
    agent_calls: int
    input_tokens: int
    output_tokens: int
    money: float | None
    minutes: float | None
    note: str


class NextStep(Struct, frozen=True):
    """What to do next: the share of the rows that gain, a sentence with its number, and the command that helps."""

    gain: float
    text: str
    command: str


class Assumptions(Struct, frozen=True):
    """What is taken for granted where no past results are given."""

    rate: float
    correlation: float
    cluster_correlation: float
    clusters: str


class ProfileSummary(Struct, frozen=True):
    """Everything that a profile contains. `logged_calls`: the data is an inference table, not an evaluation dataset."""

    source: str | None
    format: str
    outputs: str
    system: str
    rows: int
    valid: int
    invalid: int
    notes: tuple[str, ...]
    next_steps: tuple[NextStep, ...]
    power: tuple[MetricPower, ...]
    assumptions: Assumptions
    duplicates: Duplicates
    leaks: tuple[Leak, ...]
    compared_with: tuple[str, ...]
    coverage: Coverage
    balance: Balance
    cost: Cost
    logged_calls: bool = False
