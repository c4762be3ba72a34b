"""How fast and how small the package is, beside what does less: ``python -m tests.benchmarks [WORDS]``.

Each figure is a line of `LINES`: what is timed, in Python, and what it is compared with (measure.py says how). Read
the ratios, not the seconds: machines are shared and differ. Nothing here passes or fails a test; of WORDS only the
lines are measured that have them.

    --write             puts the table into docs/concepts/performance.md, with the commit and its date
    --share 0.1         a tenth of the rows, for a trial
    --against [COMMIT]  compares each verb with the package of other commits (against.py)
"""

from __future__ import annotations

import argparse
import os
import platform
from importlib.metadata import version

from tests.benchmarks import against
from tests.benchmarks.measure import Cost, Line, Work, at_least, at_most, measured, memory, rate, seconds

ROUNDS = 3


def validated(data: str, rows: int, cores: int = 1) -> Work:
    return Work("aes.validate_eval_set(data).row_count", data, rows, cores)


def command(*words: str) -> Work:
    return Work(f"import sys; sys.argv[1:] = {words}; from agent_eval_schema.cli import main; main()", whole=True)


def on_spark(run: str, rows: int) -> Work:
    """A verb on a table of Spark, whose result is computed and thrown away."""
    data = 'spark.read.parquet(file("plain", n, f"{folder}/{n}-plain.parquet"))'
    before = "from tests.helpers.spark_session import start_spark; spark = start_spark(Path(folder))"
    return Work(f'{run}.write.format("noop").mode("overwrite").save()', data, rows, 2, before)


def parquet(kind: str) -> str:
    return f'file({kind!r}, n, f"{{folder}}/{{n}}-{kind}.parquet")'


ONE_PROCESS = "os.environ['AGENT_EVAL_SCHEMA_JOBS'] = '1'"
TRACES, PLAIN = validated("table('trace', n)", 4_000), validated("table('plain', n)", 50_000)
PARSED = Work("for text in data: orjson.loads(text)", "texts('trace', n, 'trace')", 2_000, before="import orjson")
BUILD = Work(
    'main(["from-inference-table", data, f"{folder}/{time.time_ns()}.parquet", "--quiet"])',
    parquet("payload"), 100_000, 2, "from agent_eval_schema.cli import main",
)  # fmt: skip
LINES_OF_JSON = 'file("plain", n, f"{folder}/{n}-plain.jsonl")'
EVALUATIONS = "[json.dumps(e) for e in texts('evaluation', n, 'evaluation')]"
READY = "aes.prepare_for_evaluate(rows_of('plain', n), outputs='provided')"
SMALL = "sample_data/good.jsonl"
ARROW = Work("import pyarrow, pyarrow.compute, msgspec", whole=True)
PARSER = Work("import argparse, json", whole=True)

LINES = (
    Line("20 KB traces in a table: `validate_eval_set` against a bare `orjson.loads` of the texts", (TRACES, PARSED),
         at_most(2)),
    Line("the same against MLflow's `Trace.from_json` and its own extraction, on one core",
         (TRACES, Work("others.mlflow_fields(data)", "texts('trace', n, 'trace')", 500)), at_least(4)),
    Line("4 KB traces: `validate_eval_set` against `orjson.loads`",
         (validated("table('short trace', n)", 20_000), PARSED._replace(data="texts('short trace', n, 'trace')")),
         at_most(5)),
    Line("20 KB traces of OpenTelemetry against the same of MLflow", (validated("table('otel', n)", 3_000), TRACES),
         at_most(2)),
    Line("a file of 150,000 traces on two cores, against one process",
         tuple(Work("aes.validate_eval_set(data)", parquet("trace"), 150_000, 2, env) for env in ("", ONE_PROCESS)),
         at_most(0.65)),
    Line("rows with texts and documents in a table", (PLAIN,), rate(200_000)),
    Line("the same in a list", (validated("rows_of('plain', n)", 20_000),), rate(60_000)),
    Line("the same in a Parquet file, against `pandas.read_parquet`",
         (validated(parquet("plain"), 200_000, 2), Work("pd.read_parquet(data)", parquet("plain"), 200_000, 2)),
         at_most(1)),
    Line("`prepare_for_evaluate` of rows with traces, against `validate_eval_set`",
         (Work("aes.prepare_for_evaluate(data)", "table('trace', n).to_pandas()", 4_000),
          validated("table('trace', n).to_pandas()", 4_000)), at_most(1.2)),
    Line("peak memory of `validate_eval_set` of JSON Lines: 20,000, 200,000 and 1,000,000 rows",
         tuple(validated(LINES_OF_JSON, rows, 2) for rows in (20_000, 200_000, 1_000_000)), memory(1_200)),
    Line("a golden CSV: `ces.read_golden_csv`, which validates it, rows of evaluations",
         (Work("ces.read_golden_csv(data)", 'file("golden", n, f"{folder}/{n}-golden.csv")', 3_000),), rate(5_000)),
    Line("Evaluation JSON: reporting every problem, against google-cloud-ces",
         (Work("for text in data: findings_of(text.encode())", EVALUATIONS, 1_000,
               before="from agent_eval_schema.formats.ces.evaluation import findings_of"),
          Work("others.vendor_parse(data)", EVALUATIONS, 300)),
         at_most(1.2)),
    Line("five trajectory metrics, against the three of google-adk from the same cells",
         (Work("aes.score_trajectories(data)", "rows_of('trajectory', n)", 20_000),
          Work("others.adk_scores(data)", "rows_of('trajectory', n)", 1_000)), at_least(12)),
    Line("logged calls of 5 KB, Parquet to Parquet, two processes", (BUILD,), rate(20_000)),
    Line("peak memory of all processes of the same: a tenth, all", (BUILD._replace(rows=10_000), BUILD), memory(1_500)),
    *(Line(f"`spark_validate` on `local[2]`, {rows:,} rows, against `normalize_eval_set`",
           tuple(on_spark(f"aes.{verb}(data)", rows) for verb in ("spark_validate", "normalize_eval_set")),
           at_most(1.3)) for rows in (200_000, 2_000_000)),
    Line("`evaluate_eval_set` of 200 rows on sqlite, against MLflow's own `evaluate` with the same scorers",
         (Work("others.on_mlflow(lambda _, scorers: aes.evaluate_eval_set(data, scorers))", "rows_of('plain', n)", 200,
               2),
          Work("others.on_mlflow(lambda mlflow, scorers: mlflow.genai.evaluate(data=data, scorers=scorers))", READY,
               200, 2)), at_most(1.05)),
    Line("`import agent_eval_schema`", (Work("import agent_eval_schema", whole=True), Work("pass", whole=True)),
         lambda ours, nothing: seconds(0.1)(Cost(ours.seconds - nothing.seconds, 0))),
    *(Line(f"`{words[0]}` of a small file, against `{ARROW.run}`", (command(*words), ARROW), at_most(2))
      for words in (["validate", SMALL], ["metrics", SMALL], ["diff", SMALL, SMALL],
                    ["convert", SMALL, os.devnull, "--to", "mlflow"])),
    *(Line(f"`{words[0]}`, against `{PARSER.run}`", (command(*words), PARSER), at_most(2.5))
      for words in (["--help"], ["explain", "AE206"], ["formats"])),
    Line("`review` of 100,000 rows in Chromium: the first paint",
         (Work("n = 1; spent = others.review_times(data)['paint']", "rows_of('plain', n)", 100_000, 2),), seconds(3)),
    Line("the same: a key until the next row is there",
         (Work("n = 1; spent = others.review_times(data)['key']", "rows_of('plain', n)", 100_000, 2),), seconds(0.05)),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=str(__doc__).partition("\n")[0])
    parser.add_argument("words", nargs="*", help="measure only the lines with all of these words")
    parser.add_argument("--share", type=float, default=1.0, help="share of the rows, for a trial (default: 1)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"turns, the least of which counts ({ROUNDS})")
    earlier = f"compare with the package of other commits (default: {', '.join(against.EARLIER)})"
    parser.add_argument("--against", nargs="*", metavar="COMMIT", help=earlier)
    parser.add_argument("--write", action="store_true", help=f"write the table into {against.PAGE.name}")
    given = parser.parse_args()
    names = ("pyarrow", "msgspec", "orjson", "pandas", "mlflow")
    packages = ", ".join(f"{name.replace('mlflow', 'MLflow')} {version(name)}" for name in names)
    where = f"Python {platform.python_version()}, {packages}, {os.cpu_count()} cores"
    print(where)
    if given.against is not None:
        against.main(given.against or against.EARLIER, given.rounds, write=given.write)
        return
    rows = [["measured", "result", "goal", ""]]
    for line in measured([one for one in LINES if all(w in one.what for w in given.words)], given.rounds, given.share):
        print("  ".join(line), flush=True)
        rows.append(line)
    if given.write:
        against.write_table(FIGURES, f"Commit {against.own_commit()}, {where}", rows)


FIGURES = "python -m tests.benchmarks --write"

if __name__ == "__main__":
    main()
