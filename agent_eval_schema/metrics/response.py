"""Metrics of an answer against a reference text, from 0 to 1, by the libraries that the field uses.

exact_match    1 if the texts are the same, else 0
bleu           sacrebleu's sentence BLEU (its 0 to 100 as 0 to 1)
rouge_1        rouge-score's F measure, without stemming: of words,
rouge_l                                                  of the longest common subsequence of words,
rouge_l_sum                                              of that of each line, for texts of several lines
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

from agent_eval_schema.runtime.extras import missing


def exact_match(response: str, reference: str) -> float:
    """1 if the texts are the same, character by character."""
    return float(response == reference)


def bleu(response: str, reference: str) -> float:
    """Sentence BLEU. Raises EvalSetError if sacrebleu is not installed."""
    score: float = _bleu().sentence_score(response, [reference]).score / 100
    return min(score, 1.0)  # equal texts have 100.00000000000004


@lru_cache(maxsize=1)
def _bleu() -> Any:
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError as error:
        raise missing("text-metrics", "sacrebleu 2.4", error) from None
    return BLEU(effective_order=True)  # as sacrebleu defines scores of sentences


def _rouge(kind: str, response: str, reference: str) -> float:
    score: float = _rouge_scorer(kind).score(reference, response)[kind].fmeasure
    return score


@lru_cache(maxsize=8)
def _rouge_scorer(kind: str) -> Any:
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise missing("text-metrics", "rouge-score 0.1.2", error) from None
    return RougeScorer([kind])


rouge_1 = partial(_rouge, "rouge1")
rouge_l = partial(_rouge, "rougeL")
rouge_l_sum = partial(_rouge, "rougeLsum")
