"""Metrics of an answer against a reference text, and of the retrieved documents against the expected ones, from 0 to 1.

    exact_match    1 if the texts are the same, else 0
    bleu           sacrebleu's sentence BLEU (its 0 to 100 as 0 to 1)
    rouge_1        rouge-score's F measure, without stemming: of words,
    rouge_2                                                  of pairs of words,
    rouge_l                                                  of the longest common subsequence of words,
    rouge_l_sum                                              of that of each line, for texts of several lines
                   Words are runs of ASCII letters and digits: a reference in another script has no score (NaN)

    retrieved       a a b          document_recall     1/3: a of {a, c, d}
    expected        a c d          document_precision  1/2: a of {a, b}

A document is what has a `doc_uri`, so the chunks of one document count once; URIs are compared as text. Recall is
`retrieval/ground_truth/document_recall` of Databricks, the share of the ground truth that was retrieved
(https://docs.databricks.com/aws/en/generative-ai/agent-evaluation/evaluation-schema); precision is its counterpart.
A chunk without a doc_uri belongs to no known document and is excluded. No expected documents: there is no ground truth,
so no score (NaN). Nothing retrieved: recall is 0, and precision is of nothing (NaN). Chunks that all lack a doc_uri:
what was retrieved is not known, so no score (NaN).
"""

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from agent_eval_schema.errors import import_extra
from agent_eval_schema.schema import Document


def exact_match(response: str, reference: str) -> float:
    return float(response == reference)


def bleu(response: str, reference: str) -> float:
    """Sentence BLEU. Raises EvalSetError if sacrebleu is not installed."""
    score: float = _bleu().sentence_score(response, [reference]).score / 100
    return min(score, 1.0)  # equal texts have 100.00000000000004


@lru_cache(maxsize=1)
def _bleu() -> Any:
    bleu = import_extra("sacrebleu.metrics.bleu", "text-metrics", "sacrebleu 2.4")
    return bleu.BLEU(effective_order=True)  # as sacrebleu defines scores of sentences


_WORD = re.compile("[a-zA-Z0-9]")


def rouge(kind: str, response: str, reference: str) -> float:
    """NaN if the reference has no word: those of rouge-score are runs of ASCII letters and digits."""
    if not _WORD.search(reference):
        return math.nan
    score: float = _rouge_scorer(kind).score(reference, response)[kind].fmeasure
    return score


@lru_cache(maxsize=8)
def _rouge_scorer(kind: str) -> Any:
    return import_extra("rouge_score.rouge_scorer", "text-metrics", "rouge-score 0.1.2").RougeScorer([kind])


ROUGE = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL", "rouge_l_sum": "rougeLsum"}
"""The kinds of rouge-score by the names of the metrics."""


Documents = Sequence[Document]


def document_recall(retrieved: Documents, expected: Documents) -> float:
    """The share of the expected documents that were retrieved."""
    hits, wanted = _documents(retrieved), _documents(expected)
    return math.nan if not wanted or (retrieved and not hits) else len(hits & wanted) / len(wanted)


def document_precision(retrieved: Documents, expected: Documents) -> float:
    """The share of the retrieved documents that were expected."""
    hits, wanted = _documents(retrieved), _documents(expected)
    return len(hits & wanted) / len(hits) if hits and wanted else math.nan


def _documents(documents: Documents) -> set[str]:
    return {d.doc_uri for d in documents if d.doc_uri and not d.doc_uri.isspace()}
