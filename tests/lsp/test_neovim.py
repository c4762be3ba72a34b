"""Neovim with the snippet of the documentation: a typo is underlined, one key fixes it, one explains it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import COMPONENTS_REQUIRED, ROOT

pytest.importorskip("pygls")
pytestmark = pytest.mark.process

ROW = '{"request": {"messages": [{"role": "user", "content": "Hi é😀"}]}, "response": "Hello!"}\n'

SCRIPT = """
local found = {}
local function wait(test) return vim.wait(60000, test, 20) end
local function press(keys)
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(keys, true, false, true), "mx", false)
end
local function underlined()
  for _, namespace in pairs(vim.diagnostic.get_namespaces()) do
    local marks = namespace.user_data.underline_ns
    for _, mark in ipairs(marks and vim.api.nvim_buf_get_extmarks(0, marks, 0, -1, { details = true }) or {}) do
      local line = vim.api.nvim_buf_get_lines(0, mark[2], mark[2] + 1, false)[1]
      return line:sub(mark[3] + 1, mark[4].end_col)
    end
  end
end
vim.cmd("edit rows.jsonl")
wait(function() return #vim.lsp.buf_get_clients(0) > 0 or next(vim.lsp.buf_get_clients(0)) end)
press("j0/user<CR>cwusr<Esc>")
found.typed = vim.api.nvim_buf_get_lines(0, 1, 2, false)[1]
wait(underlined)
found.underlined = underlined()
press("K")
wait(function() return #vim.api.nvim_list_wins() > 1 end)
for _, window in ipairs(vim.api.nvim_list_wins()) do
  if vim.api.nvim_win_get_config(window).relative ~= "" then
    local lines = vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false)
    found.hover = table.concat(lines, "\\n")
  end
end
press("\\\\f")
wait(function() return not underlined() end)
found.fixed = vim.api.nvim_buf_get_lines(0, 1, 2, false)[1]
vim.fn.writefile({ vim.fn.json_encode(found) }, "found.json")
vim.cmd("qall!")
"""


@pytest.fixture
def neovim() -> str:
    """Neovim; the one of Debian is enough."""
    program = shutil.which("nvim")
    if program is None:
        assert not COMPONENTS_REQUIRED, "no Neovim on this machine"
        pytest.skip("no Neovim on this machine")
    return program


def test_a_typo_is_underlined_fixed_by_a_key_and_explained_by_one(neovim: str, tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/validate/editor.md").read_text("utf-8")
    snippet = re.search(r"```lua\n(.*?)```", page, re.DOTALL)
    assert snippet is not None
    (tmp_path / "snippet.lua").write_text(snippet[1], encoding="utf-8")
    (tmp_path / "script.lua").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "rows.jsonl").write_text(ROW * 2, encoding="utf-8")
    command = tmp_path / "bin" / "agent-eval-schema"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agent_eval_schema "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "XDG_STATE_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    start = [neovim, "--headless", "--clean", "-u", "snippet.lua", "-n", "-c", "luafile script.lua"]
    done = subprocess.run(start, cwd=tmp_path, env=environment, capture_output=True, timeout=300, check=False)
    assert (tmp_path / "found.json").exists(), done.stderr.decode()
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["typed"] == ROW.replace("user", "usr").rstrip()
    assert found["underlined"] == '"usr"'
    assert "AE206 message-role" in found["hover"]
    assert "It lost " in found["hover"]
    assert "response/llm_judged/" in found["hover"]
    assert found["fixed"] == ROW.rstrip()
