"""Editors with the snippets of the documentation: a typo is underlined, fixed and explained."""

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

NEOVIM = """
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
wait(function() return next(vim.lsp.buf_get_clients(0)) end)
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


EMACS = """
(require 'json)
(require 'flymake)
(defun wait-for (test)
  (let ((end (+ (float-time) 60)))
    (while (and (< (float-time) end) (not (funcall test))) (accept-process-output nil 0.05))))
(defun line () (buffer-substring (line-beginning-position) (line-end-position)))
(find-file "rows.jsonl")
(run-hooks 'post-command-hook)
(wait-for #'eglot-managed-p)
(forward-line 1)
(search-forward "user")
(replace-match "usr")
(eglot--signal-textDocument/didChange)
(let ((typed (line)) underlined hover)
  (wait-for (lambda () (flymake-start nil) (flymake-diagnostics)))
  (let* ((mark (car (flymake-diagnostics))) (start (flymake-diagnostic-beg mark)))
    (setq underlined (buffer-substring start (flymake-diagnostic-end mark)))
    (goto-char (1+ start))
    (setq hover (jsonrpc-request (eglot-current-server) :textDocument/hover (eglot--TextDocumentPositionParams))))
  (cl-letf (((symbol-function 'x-popup-menu) (lambda (_ menu) (cdr (nth 1 (nth 1 menu))))))
    (call-interactively #'eglot-code-actions))
  (with-temp-file "found.json"
    (insert (json-encode `((typed . ,typed) (underlined . ,underlined)
                           (hover . ,(plist-get (plist-get hover :contents) :value))
                           (fixed . ,(with-current-buffer "rows.jsonl" (line))))))))
"""
"""Without a window the menu of fixes is answered here: by its first entry, which the server prefers."""

JSON_MODE = (
    '(progn (package-initialize) (unless (fboundp \'js-json-mode) (define-derived-mode js-json-mode js-mode "")))'
)
"""The mode of JSON is part of Emacs 29; Debian 12 has Emacs 28, and Eglot as a package."""

EDITORS = {
    "nvim": ("lua", NEOVIM, ["--headless", "--clean", "-u", "snippet.lua", "-n", "-c", "luafile script.lua"]),
    "emacs": ("elisp", EMACS, ["--batch", "--eval", JSON_MODE, "-l", "./snippet.elisp", "-l", "./script.elisp"]),
}
"""By program, the language of its snippet, what is done in it, and how it starts."""


@pytest.mark.parametrize("name", EDITORS)
def test_a_typo_is_underlined_fixed_by_a_key_and_explained(name: str, tmp_path: Path) -> None:
    program = shutil.which(name)
    if program is None:
        assert not COMPONENTS_REQUIRED, f"no {name} on this machine"
        pytest.skip(f"no {name} on this machine")
    language, script, options = EDITORS[name]
    page = (ROOT / "docs/how-to/validate/editor.md").read_text("utf-8")
    snippet = re.search(rf"```{language}\n(.*?)```", page, re.DOTALL)
    assert snippet is not None
    (tmp_path / f"snippet.{language}").write_text(snippet[1], encoding="utf-8")
    (tmp_path / f"script.{language}").write_text(script, encoding="utf-8")
    (tmp_path / "rows.jsonl").write_text(ROW * 2, encoding="utf-8")
    command = tmp_path / "bin" / "agent-eval-schema"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agent_eval_schema "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [program, *options], cwd=tmp_path, env={**os.environ, **own}, capture_output=True, timeout=300, check=False
    )
    assert (tmp_path / "found.json").exists(), done.stderr.decode()
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["typed"] == ROW.replace("user", "usr").rstrip()
    assert found["underlined"] == '"usr"'
    assert "AE206 message-role" in found["hover"]
    assert "It lost " in found["hover"]
    assert "response/llm_judged/" in found["hover"]
    assert found["fixed"] == ROW.rstrip()
