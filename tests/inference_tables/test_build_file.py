"""`from-inference-table`: files in, files out; whole or not at all, resumed after a kill, built again by a manifest."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("duckdb")

from agent_eval_schema import eval_set_from_inference_table, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.io.parquet import parquet_places
from agent_eval_schema.io.source import BATCH_BYTES, Share
from agent_eval_schema.io.work_folder import work_of
from agent_eval_schema.io.write import write_batches
from tests.conftest import PATIENCE
from tests.helpers.logged_calls import EVERYTHING, Row, batch, chat, feedback, logged, table, trace

ROWS: list[Row] = [
    row
    for i in range(600)
    for row in (
        chat(f"id{i}", f"question {i % 400}", f"answer {i} " * 20, minute=i),
        *([feedback(f"id{i // 2}", "positive" if i % 14 else "negative", minute=i)] if i % 7 == 0 else []),
        *([batch(f"b{i}", ["x?", "y?"], ["X", "Y"])] if i % 50 == 0 else []),
    )
]


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["from-inference-table", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def parquet(path: Path, rows: list[Row], group: int = 20) -> Path:
    pq.write_table(table(rows), path, row_group_size=group)
    return path


def names(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


GOLDEN = """\
10 logged → 11 records → 10 calls → 5 readable → 4 distinct → 2 sampled

Excluded rows
1  feedback        feedback request for another row
1  status          the call failed: its status is not 200, or the response is an error
1  oversize        the request or response was too large to be logged
1  malformed       the request or response is malformed JSON
1  batch_mismatch  a batch call whose numbers of records and predictions differ
1  no_request      no request content
1  repeated        the same request_id was logged before
2  not_sampled     not drawn for the sample
"""


def test_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    source, out = parquet(tmp_path / "t.parquet", EVERYTHING), tmp_path / "set.jsonl"
    code, text, notes = run(capsys, source, out, "--sample", 2, "--seed", 7)
    assert code == 0
    head, _, about = text.partition("\n\nTable")
    assert head + "\n" == GOLDEN
    assert "\n\n✓ 2 rows of 10 logged: " in about
    assert "ai_gateway (the columns databricks_request_id, request, request_time)" in about
    assert "2 with seed 7" in about
    assert notes == f"2 rows written to {out}\n"
    assert validate_eval_set(str(out)).ok
    assert names(tmp_path) == {"t.parquet", "set.jsonl", "set.jsonl.manifest.json"}


def test_all_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out, aside = parquet(tmp_path / "t.parquet", ROWS), tmp_path / "set.parquet", tmp_path / "aside.jsonl"
    page = tmp_path / "page.html"
    options = ["--since", "2025-11-03", "--until", "2025-11-04", "--sample", "0.5", "--stratify", "thumbs"]
    options += ["--dedupe", "question", "--labels", "feedback", "--redact", "default", "--where", "status_code = 200"]
    options += ["--excluded", aside, "--html", page, "--jobs", 2, "--output", "json", "-q"]
    code, text, notes = run(capsys, source, out, *options)
    assert (code, notes) == (0, "")
    said = json.loads(text)
    rows, others = pq.read_table(out), [json.loads(line) for line in aside.read_text().splitlines()]
    assert (rows.num_rows, len(others)) == (said["rows"], sum(said["excluded"].values()))
    assert said["records"] == rows.num_rows + len(others)
    assert {r["reason"] for r in others} == {"feedback", "duplicate_question", "not_sampled"}
    assert said["funnel"] in page.read_text()
    for words in (f"agent-eval-schema profile {out}", "<code>--dedupe question</code>"):  # as on the command line
        assert words in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["OUT.txt"], "unknown file extension"),
        (["missing/OUT.jsonl"], "no such folder"),
        (["t.parquet"], "would overwrite"),
        (["OUT.jsonl", "--excluded", "OUT.jsonl"], "would overwrite"),
        (["OUT.jsonl", "--sample", "many"], "sample: expected a number of rows"),
        (["OUT.jsonl", "--redact", "nowhere:f"], "redact: cannot find"),
        (["OUT.jsonl", "--since", "soon"], "since: expected a date or time"),
        (["OUT.jsonl", "--columns", "body=request"], "columns: the table has no column for 'body'"),
        (["OUT.parquet", "--engine", "spark", "--resume"], "--resume and --jobs are of the embedded engine"),
        (["OUT.parquet", "--engine", "spark", "--jobs", "2"], "--resume and --jobs are of the embedded engine"),
    ],
)
def test_what_cannot_run_is_told_and_writes_nothing(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parquet(tmp_path / "t.parquet", EVERYTHING)
    code, out, err = run(capsys, "t.parquet", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert names(tmp_path) == {"t.parquet"}


def test_an_old_set_stays_until_the_new_one_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = parquet(tmp_path / "t.parquet", EVERYTHING), tmp_path / "set.jsonl"
    out.write_text("old\n")
    assert run(capsys, source, out, "--where", "no_such_column = 1")[0] == 2
    assert out.read_text() == "old\n"
    assert names(tmp_path) == {"t.parquet", "set.jsonl"}
    assert run(capsys, source, out)[0] == 0
    assert out.read_text() != "old\n"


def test_the_number_of_processes_changes_no_byte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few, many = parquet(tmp_path / "few.parquet", ROWS, 1000), parquet(tmp_path / "many.parquet", ROWS, 20)
    for source in (few, many):
        outs = [tmp_path / f"{source.stem}-{jobs}.parquet" for jobs in (1, 2, 3)]
        for jobs, out in enumerate(outs, start=1):
            assert run(capsys, source, out, "--jobs", jobs, "--sample", 300, "--stratify", "day")[0] == 0
        assert len({out.read_bytes() for out in outs}) == 1
    one, other = (pq.read_table(tmp_path / f"{n}-1.parquet").to_pylist() for n in ("few", "many"))
    assert one == other


def test_a_manifest_tells_how_to_build_the_same_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parquet(tmp_path / "t.parquet", ROWS)
    run(
        capsys,
        "t.parquet",
        "set.jsonl",
        "--sample",
        50,
        "--seed",
        3,
        "--dedupe",
        "question",
        "--where",
        "status_code = 200",
    )
    first, told = Path("set.jsonl").read_bytes(), json.loads(Path("set.jsonl.manifest.json").read_text())
    assert told["inputs"][0]["path"] == "t.parquet"
    assert told["inputs"][0]["bytes"] == os.path.getsize("t.parquet")
    assert told["options"] == {"sample": "50", "seed": 3, "dedupe": "question", "where": "status_code = 200"}
    assert told["summary"]["rows"] == 50
    assert {"agent-eval-schema", "duckdb", "pyarrow"} <= set(told["made_by"])
    Path("set.jsonl").unlink()
    program, *again = shlex.split(told["command"])
    assert (program, main(again)) == ("agent-eval-schema", 0)
    assert Path("set.jsonl").read_bytes() == first
    assert json.loads(Path("set.jsonl.manifest.json").read_text()) == told


# ---------------------------------------------------------------------------------------------------------------------
# killed and resumed


def command(source: Path, out: Path, *more: object) -> list[str]:
    return [sys.executable, "-m", "agent_eval_schema", "from-inference-table", str(source), str(out), *map(str, more)]


def killed(source: Path, out: Path, *more: object, parts: int = 3) -> int:
    """Start a build and kill it (SIGKILL) when so many parts are committed; gives how many there are."""
    process = subprocess.Popen(command(source, out, *more), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    folder = work_of(str(out)) / "parts"
    while process.poll() is None and (not folder.is_dir() or len(list(folder.iterdir())) < parts):
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return len(list(folder.iterdir()))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_disk_that_is_full_is_told_and_with_room_it_goes_on(
    jobs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("resource")
    source, out, whole = parquet(tmp_path / "t.parquet", ROWS, 50), tmp_path / "set.parquet", tmp_path / "whole.parquet"
    run(capsys, source, whole)
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"
    main_ = "import sys; from agent_eval_schema.cli import main; sys.exit(main(sys.argv[1:]))"
    arguments = command(source, out, "--jobs", jobs)[3:]
    made = subprocess.run([sys.executable, "-c", f"{limit}; {main_}", *arguments], capture_output=True, text=True)
    assert (made.returncode, made.stdout) == (2, "")
    assert (
        f"{work_of(str(out))}: the work folder cannot be written: File too large; free some space, then --resume"
        in made.stderr
    )
    assert "Traceback" not in made.stderr
    assert not out.exists()
    assert run(capsys, source, out, "--resume", "--jobs", jobs)[0] == 0
    assert out.read_bytes() == whole.read_bytes()


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="a terminal sends Ctrl-C otherwise")
def test_an_interrupted_run_says_so_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    big = [dict(r, response=(r["response"] or "").replace("answer", "long answer " * 40)) for r in ROWS]
    source, out, whole = parquet(tmp_path / "t.parquet", big, 3), tmp_path / "set.parquet", tmp_path / "whole.parquet"
    run(capsys, source, whole)
    process = subprocess.Popen(
        command(source, out, "--jobs", 2), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    folder = work_of(str(out)) / "parts"
    while process.poll() is None and (not folder.is_dir() or len(list(folder.iterdir())) < 3):
        time.sleep(0.001)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, *said) == (130, b"", b"agent-eval-schema: interrupted\n")
    assert run(capsys, source, out, "--resume")[0] == 0
    assert out.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_run_goes_on_to_the_same_set(jobs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    big = [dict(r, response=(r["response"] or "").replace("answer", "long answer " * 40)) for r in ROWS]
    source, out = parquet(tmp_path / "t.parquet", big, 3), tmp_path / "set.parquet"
    whole = tmp_path / "whole.parquet"
    run(capsys, source, whole, "--sample", 200, "--excluded", tmp_path / "aside.parquet")
    done = killed(source, out, "--sample", 200, "--jobs", jobs)
    assert 3 <= done < pq.read_metadata(source).num_row_groups
    assert not out.exists()
    before = {p.name: p.stat().st_mtime_ns for p in (work_of(str(out)) / "parts").iterdir()}

    seen: dict[str, int] = {}
    code, _, _ = run_watched(capsys, seen, source, out, "--sample", 200, "--resume", "--jobs", 1)
    assert code == 0
    assert {name: seen[name] for name in before} == before  # not done again
    assert out.read_bytes() == whole.read_bytes()
    found = pq.read_table(out).column("request_id").to_pylist()
    assert len(set(found)) == len(found) == 200
    assert not work_of(str(out)).exists()


def run_watched(capsys: pytest.CaptureFixture[str], seen: dict[str, int], *arguments: object) -> tuple[int, str, str]:
    """Run, and note when each part was committed before the work folder goes."""
    from agent_eval_schema.inference_tables.work_folder import BuildFolder

    remove = BuildFolder.remove

    def noted(work: BuildFolder) -> None:
        seen.update({p.name: p.stat().st_mtime_ns for p in (work.folder / "parts").iterdir()})
        remove(work)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BuildFolder, "remove", noted)
        return run(capsys, *arguments)


def test_another_job_is_not_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = parquet(tmp_path / "t.parquet", ROWS, 3), tmp_path / "set.parquet"
    killed(source, out)
    code, _, err = run(capsys, source, out, "--resume", "--seed", 9)
    assert code == 2
    assert "cannot resume: it was left by a run on other data or with other options" in err
    parquet(source, ROWS[:30], 3)
    assert run(capsys, source, out, "--resume")[0] == 2
    assert run(capsys, source, out)[0] == 0  # and without, it starts anew
    assert pq.read_metadata(out).num_rows == sum(r["response"] != "" for r in ROWS[:30]) + 1


def test_nothing_to_resume_is_a_beginning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = parquet(tmp_path / "t.parquet", EVERYTHING), tmp_path / "set.parquet"
    assert run(capsys, source, out, "--resume")[0] == 0


# ---------------------------------------------------------------------------------------------------------------------
# Delta, and large payloads


def test_delta_in_and_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deltalake = pytest.importorskip("deltalake")
    source, out = tmp_path / "payload", tmp_path / "set"
    deltalake.write_deltalake(str(source), table(ROWS[:300]))
    deltalake.write_deltalake(str(source), table(ROWS[300:]), mode="append")
    assert run(capsys, source, out, "--sample", 40, "--jobs", 2)[0] == 0
    expected = tmp_path / "set.parquet"
    run(capsys, parquet(tmp_path / "t.parquet", ROWS), expected, "--sample", 40)
    found = [deltalake.DeltaTable(str(out)).to_pyarrow_table(), pq.read_table(expected)]
    ids = [sorted(t.column("request_id").to_pylist()) for t in found]
    assert ids[0] == ids[1]
    told = json.loads((tmp_path / "set.manifest.json").read_text())
    assert told["inputs"] == [{"path": f"{source}@v1"}]
    assert run(capsys, source, out)[0] == 2  # the folder is there already


def test_payloads_of_a_mebibyte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [chat(f"id{i}", "Why?", "x" * (1 << 20)) for i in range(20)] + [logged("cut", "{" + "x" * (1 << 20), "{}")]
    out = tmp_path / "set.parquet"
    assert run(capsys, parquet(tmp_path / "t.parquet", rows), out)[0] == 0
    assert [len(t) for t in pq.read_table(out).column("response").to_pylist()] == [1 << 20] * 20


def test_a_function_without_a_name_sees_all_rows_of_a_file(tmp_path: Path) -> None:
    source = parquet(tmp_path / "t.parquet", ROWS, 20)
    build = eval_set_from_inference_table(str(source), redact=lambda t: t.replace("answer", "reply"), jobs=2)
    assert build.summary.rows == len(build.rows)
    assert not build.rows["response"].str.contains("answer").any()


def test_a_set_of_delta_tables_is_built_again_from_their_old_versions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables have changed since; the command of the manifest reads them as they were."""
    deltalake = pytest.importorskip("deltalake")
    monkeypatch.chdir(tmp_path)
    log = {
        "request_id": "id3",
        "source": json.dumps({"type": "human", "id": "ana"}),
        "timestamp": "2025-11-05T09:00:00Z",
        "text_assessment": json.dumps({"suggested_output": "An edit."}),
    }
    joined = {"trace": json.dumps(trace("id4", "question 4", "answer 4"))}
    tables = {"t": table(ROWS), "log": pa.Table.from_pylist([log]), "traces": pa.Table.from_pylist([joined])}
    for name, rows in tables.items():
        deltalake.write_deltalake(name, rows)
    options = ["--labels", "log", "--traces", "traces", "--columns", "requester=session_id", "--include", "invalid"]
    options += [
        "--sample",
        "0.9",
        "--seed",
        "2",
        "--stratify",
        "status_code % 7",
        "--until",
        "2026-01-01",
        "--no-values",
    ]
    assert run(capsys, "t", "set.jsonl", *options, "--redact", "default", "--dedupe", "none")[0] == 0
    first, told = Path("set.jsonl").read_bytes(), json.loads(Path("set.jsonl.manifest.json").read_text())
    assert [i["path"] for i in told["inputs"]] == ["t@v0", "log@v0", "traces@v0"]
    assert b"An edit." in first
    for name, rows in tables.items():
        deltalake.write_deltalake(name, rows.slice(0, 1), mode="overwrite")
    _, *again = shlex.split(told["command"])
    assert main(again) == 0
    assert Path("set.jsonl").read_bytes() == first
    assert json.loads(Path("set.jsonl.manifest.json").read_text())["summary"] == told["summary"]


# ---------------------------------------------------------------------------------------------------------------------
# folders of Parquet files, which differ


def without(rows: list[Row], *names: str) -> list[Row]:
    return [{k: v for k, v in row.items() if k not in names} for row in rows]


def folder_of_parquet(folder: Path) -> Path:
    """The rows in three files as Spark writes them: one lacks columns, another has other types for some."""
    folder.mkdir()
    first, second, third = ROWS[:200], ROWS[200:400], ROWS[400:]
    pq.write_table(table(first), folder / "part-0.parquet", row_group_size=30)
    lacking = pa.Table.from_pylist(without(second, "requester", "served_entity_id", "logging_error_codes"))
    pq.write_table(lacking, folder / "part-1.parquet", row_group_size=50)
    other = [{**r, "status_code": str(r["status_code"]), "request_time": r["request_time"].isoformat()} for r in third]
    pq.write_table(pa.Table.from_pylist(without(other, "logging_error_codes")), folder / "part-2.parquet")
    (folder / "_SUCCESS").touch()
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "x.parquet").write_text("half a file")
    return folder


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_folder_of_files_that_differ(jobs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = folder_of_parquet(tmp_path / "t"), tmp_path / "set.parquet"
    whole, same = parquet(tmp_path / "t.parquet", ROWS), tmp_path / "same.parquet"
    assert run(capsys, source, out, "--jobs", jobs, "--sample", 200, "--dedupe", "question")[0] == 0
    assert run(capsys, whole, same, "--sample", 200, "--dedupe", "question")[0] == 0
    found, expected = (pq.read_table(p).drop_columns(["served_entity"]).to_pylist() for p in (out, same))
    assert found == expected
    told = json.loads((tmp_path / "set.parquet.manifest.json").read_text())["inputs"]
    assert (told[0]["files"], told[0]["bytes"]) == (3, sum(p.stat().st_size for p in source.glob("*.parquet")))


def test_sql_over_a_column_that_one_file_lacks(tmp_path: Path) -> None:
    source = str(folder_of_parquet(tmp_path / "t"))
    build = eval_set_from_inference_table(source, where="requester = 'svc'", labels=None)
    assert build.summary.excluded["filtered"] == sum(r["response"] != "" for r in ROWS[200:400]) + sum(
        "predictions" in (r["response"] or "") for r in ROWS[200:400]
    )
    strata = eval_set_from_inference_table(source, sample=30, stratify="requester").summary.strata
    assert {s.stratum for s in strata} == {"svc", ""}


def test_folders_that_say_a_column(tmp_path: Path) -> None:
    for day in ("2025-11-03", "2025-11-04"):
        folder = tmp_path / "t" / f"day_logged={day}"
        folder.mkdir(parents=True)
        pq.write_table(table([chat(f"a-{day}")]), folder / "part-0.parquet")
    build = eval_set_from_inference_table(str(tmp_path / "t"), where="day_logged = '2025-11-04'")
    assert build.rows["request_id"].tolist() == ["a-2025-11-04"]
    assert validate_eval_set(str(tmp_path / "t")).row_count == 2


def test_another_file_in_the_folder_is_another_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = folder_of_parquet(tmp_path / "t"), tmp_path / "set.parquet"
    killed(source, out)
    pq.write_table(table(ROWS[:5]), source / "part-3.parquet")
    code, _, err = run(capsys, source, out, "--resume")
    assert code == 2
    assert "other data" in err


def test_columns_that_only_later_lines_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.jsonl"
    lines = [{**r, "request_time": None} for r in [*without([chat("a")], "requester"), chat("b", requester="ana")]]
    path.write_text("".join(json.dumps(r) + "\n" for r in lines))
    monkeypatch.setattr("agent_eval_schema.io.source.MAX_BATCH_ROWS", 1)
    build = eval_set_from_inference_table(str(path), where="requester = 'ana'", stratify="requester", sample=5)
    assert build.rows["request_id"].tolist() == ["b"]


def test_small_batches_share_a_row_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema([("n", pa.int64())])
    batches = [pa.RecordBatch.from_arrays([pa.array(range(i, i + 50))], schema=schema) for i in range(0, 1000, 50)]
    monkeypatch.setattr("agent_eval_schema.io.parquet.GROUP_BYTES", 8 * 400)
    assert write_batches(str(tmp_path / "rows.parquet"), batches, schema) == 1000
    written = pq.read_metadata(tmp_path / "rows.parquet")
    assert [written.row_group(i).num_rows for i in range(written.num_row_groups)] == [400, 400, 200]
    assert pq.read_table(tmp_path / "rows.parquet")["n"].to_pylist() == list(range(1000))


@pytest.mark.parametrize("rows", [1, 15, 16, 17, 47, 48, 49])
def test_a_row_group_is_read_in_batches_of_one_size(rows: int, tmp_path: Path) -> None:
    path = tmp_path / "large.parquet"
    pq.write_table(pa.table({"n": range(rows), "text": ["x" * (BATCH_BYTES // 16)] * rows}), path, use_dictionary=False)
    batches = [batch for _, _, batch in parquet_places(str(path), Share(0, 1, 0))]
    sizes = [batch.num_rows for batch in batches]
    assert max(sizes) <= 16
    assert max(sizes) - sizes[-1] <= len(sizes) - 1
    assert [n for batch in batches for n in batch["n"].to_pylist()] == list(range(rows))


# ---------------------------------------------------------------------------------------------------------------------
# two builds at once
WAITING = """
import pathlib, time
folder = pathlib.Path(__file__).parent
def hide(text):
    (folder / "started").touch()
    while not (folder / "go").exists():
        time.sleep(0.01)
    return text
"""


@pytest.fixture
def waiting_build(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A build of its own process that has begun, and goes on when there is a file `go`; and what it writes."""
    folder, out = tmp_path / "hooks", tmp_path / "set.jsonl"
    folder.mkdir()
    (folder / "waits.py").write_text(WAITING)
    source = parquet(tmp_path / "t.parquet", EVERYTHING)
    command = [sys.executable, "-m", "agent_eval_schema", "from-inference-table", str(source), str(out)]
    build = subprocess.Popen(
        [*command, "--redact", "waits:hide", "--jobs", "1"],
        env={**os.environ, "PYTHONPATH": str(folder)},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    while not (folder / "started").exists():
        assert build.poll() is None, build.communicate()
        time.sleep(0.01)
    yield build, out
    build.kill()
    build.communicate()


@pytest.mark.parametrize("more", [[], ["--resume"], ["--jobs", 2], ["--excluded"], ["--html"]], ids=str)
def test_the_second_of_two_builds_into_one_output_is_told(
    more: list[object],
    waiting_build: tuple[subprocess.Popen[str], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    build, out = waiting_build
    target = [tmp_path / "another.jsonl", *more, out] if more in (["--excluded"], ["--html"]) else [out, *more]
    code, _, err = run(capsys, tmp_path / "t.parquet", *target, "--sample", "1")
    assert (code, err.count("\n")) == (2, 1)
    assert f"{out}: cannot be written: another run (process " in err
    assert build.poll() is None
    (tmp_path / "hooks" / "go").touch()
    assert build.wait() == 0
    manifest = json.loads((tmp_path / "set.jsonl.manifest.json").read_text())
    assert manifest["options"]["redact"] == "waits:hide"
    assert manifest["summary"]["rows"] == len(out.read_text().splitlines())
    assert names(tmp_path) == {"t.parquet", "hooks", "set.jsonl", "set.jsonl.manifest.json"}


def test_a_build_that_was_killed_keeps_nobody_out(
    waiting_build: tuple[subprocess.Popen[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build, out = waiting_build
    build.kill()
    build.wait()
    assert run(capsys, tmp_path / "t.parquet", out)[0] == 0
    assert {"set.jsonl", "set.jsonl.manifest.json"} <= names(tmp_path)
    assert names(tmp_path).isdisjoint({".set.jsonl.lock", ".set.jsonl.work"})
