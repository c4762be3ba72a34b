"use strict";
{
const $ = id => document.getElementById(id);
const same = (a, b) => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);
const plural = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
const LABELS = ["expected_facts", "expected_response", "guidelines", "documents", "reference_trajectory", "tags"];
const EMPTY = {expected_facts: [], expected_response: "", guidelines: [], documents: {}, reference_trajectory: [], tags: {}};

// --- where the answers come from: a server, or (in a bundle) the page itself and the storage of the browser
const params = () => new URLSearchParams(location.hash.slice(1));
const token = params().get("t") ?? "";
async function ask(path, body) {
  const answer = await fetch("api/" + path, {
    method: body === undefined ? "GET" : "POST", cache: "no-store",
    headers: {"X-Review-Token": token, ...(body === undefined ? {} : {"Content-Type": "application/json"})},
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const found = await answer.json().catch(() => ({error: `the server answered ${answer.status}`}));
  if (!answer.ok) throw Object.assign(new Error(found.error ?? answer.statusText), {status: answer.status, states: found.states});
  return found;
}
const server = {
  overview: () => ask("overview"), row: n => ask("row/" + n), change: steps => ask("change", {steps}),
  check: (n, state) => ask("check", {row: n, state}), undo: () => ask("undo", {}),
  kind: (kind, choice) => ask("kind", {kind, choice}), search: text => ask("search?" + new URLSearchParams({q: text})),
  refresh: () => ask("refresh", {}), preview: what => ask("preview?" + new URLSearchParams({what})), progress: () => ask("progress"), write: (path, what, replace) => ask("write", {path, what, replace}), where: "on disk",
};
const held = $("data") && JSON.parse($("data").textContent);
const bundle = held && (() => {
  const key = "agent-eval-schema review " + held.bundle;
  let events = [], broken = false;
  const readAgain = () => {  // another tab writes, too; if the storage was cleared, what this tab knows stays
    try {
      const stored = JSON.parse(localStorage.getItem(key)) ?? events;
      if (!Array.isArray(stored)) throw new Error("no journal");
      events = stored;
    } catch { broken = true }
  };
  readAgain();
  const states = () => {
    const found = {};
    for (const e of events) {
      const s = found[e.row.n] ??= {...(held.details[e.row.n]?.state ?? {})};
      if (e.new === undefined || e.new === null) delete s[e.path]; else s[e.path] = e.new;
    }
    return found;
  };
  const stateOf = n => states()[n] ?? held.details[n]?.state ?? {};
  const store = added => {
    if (broken) throw new Error("this browser keeps nothing for this page: download the journal of another one first");
    try { localStorage.setItem(key, JSON.stringify([...events, ...added])) }
    catch { throw new Error("the storage of the browser is full: download the journal") }
    events = [...events, ...added];
  };
  const requireSeen = changes => {  // as a server does: what another tab has changed is not replaced by one that did not see it
    const now = states(), known = c => now[c.row] ??= {...held.details[c.row].state};
    for (const c of changes) {
      if (!same(known(c)[c.path], c.old) && !same(known(c)[c.path], c.new)) throw Object.assign(new Error(`${c.path} was changed in another window`), {status: 409, states: answer([...new Set(changes.map(c => c.row))]).states});
      now[c.row][c.path] = c.new;
    }
  };
  const write = (op, changes) => {
    const seq = Math.max(held.seq, ...events.map(e => e.seq)) + 1, at = new Date().toISOString().replace(/\.\d+Z/, "Z");
    store(changes.map((c, i) => ({v: 1, seq: seq + i, at, by: held.overview.reviewer, row: held.details[c.row].key, op,
      path: c.path, old: c.old ?? null, new: c.new ?? null,
      ...(changes.length > 1 ? {first: seq} : {}), ...(c.undoes ? {undoes: c.undoes} : {})})));
  };
  const isDone = (name, d, s) => name === "truth" ? s.status === "submitted" && (LABELS.some(k => k in s) || !!s.dropped)
    : name === "fixes" ? d.fixes.every(f => s[f.path]) : name === "conflicts" || name === "duplicates" ? "choice" in s || !!s.dropped
    : name === "together" ? "decided" in s : s.status === "submitted";
  const progress = () => {
    const all = states(), count = test => Object.fromEntries(held.overview.queues.map(q => [q.name, q.rows.filter(n => held.details[n] && test(q.name, held.details[n], all[n] ?? held.details[n].state)).length]));
    return {coverage: held.overview.coverage, changes: events.length, done: count(isDone), empty: count((name, d, s) => name === "truth" && s.status === "submitted" && !LABELS.some(k => k in s))};
  };
  const answer = rows => ({rows, states: Object.fromEntries(rows.map(n => [n, stateOf(n)])), progress: progress()});
  return {
    where: "in this browser",
    overview: async () => {
      const all = states();
      const status = Object.fromEntries(Object.entries(all).filter(([, s]) => s.status).map(([n, s]) => [n, s.status]));
      return {...held.overview, progress: progress(), states: {...held.overview.states, ...status}};
    },
    row: async n => ({...held.details[n], state: stateOf(n)}),
    change: async steps => {
      readAgain();
      requireSeen(steps.flatMap(s => s.changes));
      for (const s of steps) write("set", s.changes);
      return answer([...new Set(steps.flatMap(s => s.changes).map(c => c.row))]);
    },
    check: async () => null,
    undo: async () => {
      readAgain();
      const undone = new Set(events.map(e => e.undoes)), left = events.filter(e => e.op === "set" && !e.path.startsWith("draft:") && !undone.has(e.seq));
      if (!left.length) return answer([]);
      const last = left.at(-1).first ?? left.at(-1).seq, step = left.filter(e => (e.first ?? e.seq) === last).reverse();
      write("undo", step.map(e => ({row: e.row.n, path: e.path, old: e.new, new: e.old, undoes: e.seq})));
      return answer([...new Set(step.map(e => e.row.n))]);
    },
    kind: async (kind, choice) => {
      readAgain();
      const changes = Object.values(held.details).flatMap(d => d.fixes.filter(f => f.kind === kind && !stateOf(d.n)[f.path])
        .flatMap(f => [{row: d.n, path: f.path, new: choice}, ...(d.fixes.length === 1 && !stateOf(d.n).status ? [{row: d.n, path: "status", new: "submitted"}] : [])]));
      if (changes.length) write("set", changes);
      return answer([...new Set(changes.map(c => c.row))]);
    },
    search: async text => ({rows: Object.values(held.details).filter(d => JSON.stringify([d.id, d.turns, d.answer, d.documents, d.truth, d.source]).toLowerCase().includes(text.toLowerCase())).map(d => d.n)}),
    refresh: async () => ({}),
    listen: changed => addEventListener("storage", e => {
      if (e.key !== key) return;
      const before = events.length;
      readAgain();
      changed(answer([...new Set(events.slice(before).map(e => e.row.n))]).states);
    }),
    journal: () => { readAgain(); return events.map(e => JSON.stringify(e) + "\n").join("") },
  };
})();
const api = bundle ?? server;

// --- state of the page
let O, queue = "", rows = [], at = 0, D = null, L = {}, checked = null, hits = [], busy = 0, hideAnswer = false;
const details = new Map();
const label = name => L[name] ?? (name === "expected_response" && D?.wrong.expected_response || D?.truth[name]) ?? EMPTY[name];
const isLabeled = () => LABELS.some(n => n in L);

function shown(text, bad) { $("saved").replaceChildren(visible(text)); $("saved").className = bad ? "bad" : "" }

// Every change, drafts too, is a step in one queue: it is kept in the browser at once, sent in order (of typed text, when
// the typing pauses), and "Saved" when the answer has come. What is sent together is one step, which is undone together.
// `local` has each row as it is here: what the server knows, and over it what it does not know yet.
const local = new Map(), pending = new Map(), conflicts = new Map();
let steps = [], timer = 0, grouping = false, sending = null, alone = false, pause = 0, place = "";
const isDraft = path => path.startsWith("draft:");
function stateOf(n) { if (!local.has(n)) local.set(n, {}); return local.get(n) }
function put(n, path, value) {
  const state = stateOf(n);
  if (value === null || value === undefined) delete state[path]; else state[path] = value;
  if (path === "status") { if (value) O.states[n] = value; else delete O.states[n] }
}
function known(n, state) {
  for (const path of Object.keys(stateOf(n))) if (!(path in state)) put(n, path, null);
  for (const [path, value] of Object.entries(state)) put(n, path, value);
  for (const c of [...steps.flatMap(s => s.changes), ...pending.values(), ...conflicts.values()]) if (c.row === n) put(n, c.path, c.new);
}
function keep() {
  if (!place) return;
  try {
    const left = [...steps, ...(pending.size ? [{id: newId(), changes: [...pending.values()]}] : [])];
    if (left.length || conflicts.size) localStorage.setItem(place, JSON.stringify({steps: left, conflicts: [...conflicts.values()]}));
    else localStorage.removeItem(place);
  } catch { shown("This browser keeps nothing: what is not saved is lost with this page", true) }
}
const newId = () => Date.now().toString(36) + "-" + Math.random().toString(36).slice(2);
async function adopt() {  // what this tab, or one that is closed, could not send
  if (bundle) return;
  const prefix = `agent-eval-schema unsent ${O.journal} `;
  const claim = (id, options) => new Promise(done => navigator.locks.request(id, options, lock => { done(!!lock); return lock ? new Promise(() => 0) : null }).catch(() => done(false)));
  const own = sessionStorage.getItem("agent-eval-schema tab");
  const mine = own?.startsWith(prefix) && await claim(own, {signal: AbortSignal.timeout(500)}) ? own : prefix + newId();
  if (mine !== own) await claim(mine, {});
  sessionStorage.setItem("agent-eval-schema tab", mine);
  for (const id of Object.keys(localStorage).filter(k => k.startsWith(prefix))) {
    if (id !== mine && !await claim(id, {ifAvailable: true})) continue;
    const left = JSON.parse(localStorage.getItem(id));
    steps.push(...left.steps);
    for (const c of left.conflicts) conflicts.set(c.row + " " + c.path, c);
    if (id !== mine) localStorage.removeItem(id);
  }
  place = mine;
  keep();
  for (const n of new Set([...steps.flatMap(s => s.changes), ...conflicts.values()].map(c => c.row))) known(n, {});
}
function step(run) { flush(); grouping = true; try { run() } finally { grouping = false } flush() }
function set(path, value, later = false, row = D.n) {
  if (!later && !grouping) flush();
  const id = row + " " + path, open_ = conflicts.get(id) ?? pending.get(id);
  if (open_) open_.new = value ?? null;
  else pending.set(id, {row, key: row === D.n ? D.key : D.group.find(g => g.n === row)?.key, path, old: stateOf(row)[path] ?? null, new: value ?? null});
  put(row, path, value);
  keep();
  if (pending.size) shown("Saving…");
  clearTimeout(timer);
  if (later) timer = setTimeout(flush, 300); else if (!grouping) flush();
}
function flush() {
  clearTimeout(timer);
  const changes = [...pending.values()].filter(c => !same(c.old, c.new));
  pending.clear();
  if (changes.length) steps.push({id: newId(), changes});
  keep();
  if (!steps.length && $("saved").textContent === "Saving…") shown(`✓ Saved ${api.where}`);
  return send();
}
function send() { return sending ?? (steps.length ? sending = drain() : Promise.resolve()) }
async function drain() {
  try {
    while (steps.length) {
      const batch = steps.slice(0, alone ? 1 : 100);
      let answer;
      try { answer = await api.change(batch) } catch (error) {
        const isRefused = error.status === 409 || error.status === 400;
        if (isRefused && batch.length > 1) alone = true;  // which of them it is
        else if (isRefused) contradicted(error);
        else return unsent(error);
        continue;
      }
      steps.splice(0, batch.length);
      pause = 0;
      took(answer);
    }
  } finally { sending = null; keep() }
}
function unsent(error) {
  pause = Math.min(10_000, 2 * pause || 500);
  shown(`Not saved: ${error.message}. ${plural(steps.length, "step")} ${place ? "kept in this browser" : "on this page"}, sent again soon`, true);
  $("saved").append(" ", button("Try again", send));
  setTimeout(send, pause);
}
function contradicted(error) {  // another window has changed the same: both texts stay, and a person decides
  const sent = steps.shift(), rest = [];
  alone = false;
  for (const c of sent.changes) {
    const theirs = (error.states ? error.states[c.row]?.[c.path] : c.old) ?? null, id = c.row + " " + c.path;
    if (error.states && (same(theirs, c.old) || same(theirs, c.new))) rest.push(c);
    else if (!isDraft(c.path) || c.new !== null) conflicts.set(id, {...c, theirs, why: error.message, new: conflicts.get(id)?.new ?? c.new});
  }
  if (rest.length) steps.unshift({id: newId(), changes: rest});
  keep();
  for (const [n, state] of Object.entries(error.states ?? {})) known(+n, state);
  if (D) { drawForm(); drawList() }
  differing();
}
function differing() {
  const first = [...conflicts.values()][0];
  if (!first) return;
  shown(`${plural(conflicts.size, "change")} of yours ${conflicts.size === 1 ? "was" : "were"} changed in another window`, true);
  $("saved").append(" ", button(`Decide: row ${first.row}`, () => { pick(queue, first.row); $("form").scrollTop = 0 }));
}
function resolve(c, value) {
  conflicts.delete(c.row + " " + c.path);
  put(c.row, c.path, c.theirs);
  set(c.path, value, false, c.row);
  drawAll();
  differing();
}
const bothOf = (a, b) => Array.isArray(a) && Array.isArray(b) ? [...a, ...b.filter(x => !a.some(y => same(x, y)))]
  : typeof a === "string" && typeof b === "string" ? a + "\n" + b : a && b && typeof a === "object" && typeof b === "object" ? {...a, ...b} : null;
function drawConflict(c) {
  const words = v => v === null ? "nothing" : typeof v === "string" ? v : Array.isArray(v) && v.every(x => typeof x === "string") ? v.join("\n") : JSON.stringify(v, null, 1), both = bothOf(c.theirs, c.new);
  return el("div", {class: "issue error", role: "group", "aria-label": "changed in two windows"}, el("b", {}, (c.why.startsWith(c.path) ? c.why : `${c.path}: ${c.why}`).replace("draft:", "text for ")),
    el("p", {class: "muted"}, "saved there"), text(words(c.theirs)), el("p", {class: "muted"}, "yours, not saved"), text(words(c.new)),
    el("p", {}, button("Keep yours", () => resolve(c, c.new)), " ", button("Take the saved one", () => resolve(c, c.theirs)), " ", both && button("Keep both", () => resolve(c, both))));
}
let channel = null;  // other tabs of this journal
function listen() {
  const changed = states => { for (const [n, state] of Object.entries(states)) known(+n, state); if (D && D.n in states) drawAll(); else drawList(); drawQueues() };
  if (bundle) return bundle.listen(changed);
  channel = new BroadcastChannel("agent-eval-schema " + O.journal);
  channel.onmessage = e => changed(e.data);
}
function took(answer) {
  for (const [n, state] of Object.entries(answer.states)) known(+n, state);
  channel?.postMessage(answer.states);
  O.coverage = answer.progress.coverage;
  O.progress = answer.progress;
  const waits = pending.size || steps.length;
  if (answer.check && D && answer.row === D.n && !waits) { checked = answer.check; D.others = answer.others; drawLive() }
  if (!waits) { shown(`✓ Saved ${api.where}`); differing() }
  drawList();
  drawQueues();
}

let checking = 0;
async function checkLive() {  // while typing, before it is saved
  const mine = ++checking, n = D.n;
  const found = await api.check(n, L).catch(() => null);
  if (found && mine === checking && n === D.n) { checked = found; drawLive() }
}

// --- rows
async function load(n) {
  if (!details.has(n)) {
    const before = JSON.stringify(local.get(n)), found = await api.row(n);
    if (before === JSON.stringify(local.get(n))) known(n, found.state);  // or else an answer came in between
    for (const g of found.group) { if (!local.has(g.n)) known(g.n, g.state); g.state = stateOf(g.n) }
    found.state = stateOf(n);
    details.set(n, found);
    if (details.size > 60) details.delete(details.keys().next().value);
  }
  return details.get(n);
}
let waiting = null;  // the keys that were pressed before the row was there
async function open(n, again = false) {
  if (n === undefined || n === null) { D = null; drawRow(); drawForm(); return }
  flush();
  const mine = ++busy;
  if (O.states[n] === "submitted" && n !== D?.n) details.delete(n);  // what others decide is shown from now on
  if (!details.has(n)) {
    waiting ??= [];
    try { await load(n) } catch (error) {
      if (mine !== busy) return;
      waiting = null;
      at = Math.max(0, rows.indexOf(D?.n));
      shown(`Row ${n} cannot be read: ${error.message}`, true);
      $("saved").append(" ", button("Try again", () => pick(queue, n)));
      return;
    }
    if (mine !== busy) return;
  }
  D = details.get(n);
  L = D.state;
  checked = D.issues ? D : null;
  address();
  drawAll();
  $("row").scrollTop = $("form").scrollTop = 0;
  document.body.classList.remove("rows");
  if (!again && innerWidth <= 900) $("row").scrollIntoView();
  if (document.activeElement === document.body || $("form").contains(document.activeElement)) $("row").focus({preventScroll: true});  // so PageDown, Space, End and arrows scroll it
  for (const next of [rows[at + 1], rows[at + 2], rows[at - 1]]) if (next !== undefined) load(next).catch(() => 0);
  const keys = waiting ?? [];
  waiting = null;
  while (keys.length && !waiting) press(keys.shift());
  waiting?.push(...keys);
}
function address() {
  const p = new URLSearchParams();
  if (token) p.set("t", token);
  p.set("q", queue);
  if (D) p.set("row", D.n);
  history.replaceState(null, "", "#" + p);
}
function go(step) { at = Math.max(0, Math.min(rows.length - 1, at + step)); open(rows[at]) }
function pick(name, n) {
  queue = name;
  rows = name === "search" ? hits : O.queues.find(q => q.name === name)?.rows ?? [];
  if (!rows.length) { ++busy; at = 0; D = null; address(); drawList(); drawQueues(); drawRow(); drawForm(); return }
  at = Math.max(0, n === undefined ? rows.findIndex(r => !O.states[r]) : rows.indexOf(n));
  if (n !== undefined && rows[at] !== n) { queue = "all"; rows = O.queues.find(q => q.name === "all").rows; at = Math.max(0, rows.indexOf(n)) }
  $("list").scrollTop = Math.max(0, at * HEIGHT - 150);
  drawQueues();
  open(rows[at]);
}
function decide(status, more = () => 0) {
  if (!D) return;
  takeTyped(status === "submitted");
  step(() => { more(); set("status", status) });
  drawQueues();
  if (at + 1 < rows.length) go(1); else { drawAll(); shown("The end of this queue"); }
}
function takeTyped(all = false) {  // a wrong value that is shown and not corrected only with the row, and not if it is an object or a list
  const isWrong = name => name in (D?.wrong ?? {}) && !(name in L), isText = name => isWrong(name) && !/^[[{]/.test(D.wrong[name]);
  const isTaken = (name, value) => L["draft:" + name] !== undefined ? value.trim() || isWrong(name) : isText(name);
  for (const name of [...document.querySelectorAll("[data-new]")].filter(e => all ? isTaken(e.dataset.new, e.value) : L["draft:" + e.dataset.new]).map(e => e.dataset.new)) document.querySelector(`[data-new=${name}]`).take();
  if (all && isText("expected_response")) set("expected_response", D.wrong.expected_response);
}

// --- what the keys do: this table makes the keys, the badges on buttons and the sheet
const always = () => true, has = () => !!D;
const KEYS = [
  {id: "next", keys: ["j"], show: "J", text: "next row", run: () => go(1)},
  {id: "previous", keys: ["k"], show: "K", text: "previous row", run: () => go(-1)},
  {id: "submit", keys: ["Ctrl+Enter"], show: "Ctrl ⏎", text: "submit, next row (also while typing)", when: has, typing: true, run: () => decide("submitted")},
  {id: "skip", keys: ["s"], show: "S", text: "skip", when: has, run: () => decide("skipped")},
  {id: "flag", keys: ["!"], show: "!", text: "needs another person", when: has, run: () => decide("flagged")},
  {id: "undo", keys: ["u"], show: "U", text: "undo the last step, of an earlier session too", run: undo},
  {id: "document", keys: "123456789".split(""), show: "1–9", text: "document: relevant, not relevant, undecided", when: () => has() && !choosing(), run: k => mark(+k - 1)},
  {id: "fact", keys: ["f"], show: "F", text: "the selected text becomes a fact; without a selection, write one", when: has, run: addFact},
  {id: "response", keys: ["r"], show: "R", text: "write one expected response; pressed again, take over the answer of the agent", when: has, run: takeAnswer},
  {id: "guideline", keys: ["g"], show: "G", text: "write a guideline", when: has, run: () => focus("[data-new=guidelines]")},
  {id: "calls", keys: ["c"], show: "C", text: "expect the tool calls of the agent", when: () => D?.calls.length, run: () => { edit("reference_trajectory", structuredClone(D.calls)) }},
  {id: "tag", keys: ["t"], show: "T", text: "write a tag", when: has, run: () => focus("[data-new=tags]")},
  {id: "rate", keys: ["v"], show: "V", text: "the answer is right, partly right, wrong, not rated", when: () => D?.answer, run: () => edit("rating", [...RATINGS, null][(RATINGS.indexOf(L.rating) + 1) % 4])},
  {id: "raw", keys: ["m"], show: "M", text: "show the raw text, or Markdown rendered", when: () => D?.trees?.length, run: () => { markdown.raw = !markdown.raw; drawRow() }},
  {id: "note", keys: ["n"], show: "N", text: "write a note", when: has, run: () => focus("#note")},
  {id: "drop", keys: ["d"], show: "D", text: "drop the row from the written file, or keep it", when: has, run: () => { set("dropped", L.dropped ? null : true); drawAll() }},
  {id: "accept", keys: ["a"], show: "A", text: "accept the fix", when: () => D?.fixes.length, run: () => fix("accept")},
  {id: "reject", keys: ["x"], show: "X", text: "reject the fix", when: () => D?.fixes.length, run: () => fix("reject")},
  {id: "kind", keys: ["A"], show: "⇧ A", text: "accept all fixes of exactly this kind", when: () => D?.fixes.length, run: fixKind},
  {id: "right", keys: "123456789".split(""), show: "1–9", text: "of rows that ask the same: this one is right", when: () => choosing(), run: k => choose(+k - 1)},
  {id: "both", keys: ["b"], show: "B", text: "of rows that ask the same: all are right, merge their facts", when: () => choosing(), run: mergeGroup},
  {id: "differ", keys: ["q"], show: "Q", text: "of rows that ask the same: the questions differ, leave them", when: () => choosing(), run: () => decide("submitted", () => set("choice", "the questions differ"))},
  {id: "hide", keys: ["h"], show: "H", text: "hide the answer of the agent until the first label", run: () => { hideAnswer = !hideAnswer; drawRow() }},
  {id: "together", keys: ["y"], show: "Y", text: "this is what we decided together", when: () => D?.others.length, run: () => decide("submitted", () => set("decided", true))},
  {id: "refresh", keys: ["."], show: ".", text: "make the queues anew", run: refresh},
  {id: "search", keys: ["/"], show: "/", text: "search", run: () => focus("#find")},
  {id: "write", keys: ["w"], show: "W", text: bundle ? "download the journal" : "write the reviewed file", run: () => bundle ? download() : write()},
  {id: "help", keys: ["?"], show: "?", text: "all keys", run: help},
  {id: "leave", keys: ["Escape"], show: "Esc", text: "leave a field", typing: true, run: () => document.activeElement?.blur()},
];
const key = id => KEYS.find(k => k.id === id);
const badge = id => el("kbd", {"aria-hidden": "true"}, key(id).show);
function button(text, run, id, props = {}) { return el("button", {type: "button", onclick: () => run(), ...props}, text, id ? badge(id) : null) }
const command = (id, text, props) => button(text, () => key(id).run(), id, props);
function pressed(event) {
  if (waiting && !$("sheet").open && !event.isComposing && !event.altKey) { event.preventDefault(); waiting.push(event); return }
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName), control = event.ctrlKey || event.metaKey;
  if ($("sheet").open || event.altKey || event.isComposing) return;
  const name = (control ? "Ctrl+" : "") + event.key;
  if (event.target.id === "list" && (event.key === "ArrowDown" || event.key === "ArrowUp")) { event.preventDefault(); go(event.key === "ArrowDown" ? 1 : -1); return }
  const found = KEYS.find(k => k.keys.includes(name) && (k.when ?? always)() && (k.typing || !typing));
  if (!found) return;
  event.preventDefault();
  found.run(event.key);
}
function press(event) {  // a key that was pressed before its row was there
  const field = document.activeElement, isField = /^(INPUT|TEXTAREA)$/.test(field?.tagName);
  const again = new KeyboardEvent("keydown", {key: event.key, ctrlKey: event.ctrlKey, metaKey: event.metaKey, shiftKey: event.shiftKey, bubbles: true, cancelable: true});
  if (!(isField ? field : document.body).dispatchEvent(again) || !isField || event.ctrlKey || event.metaKey) return;
  if (event.key.length === 1) field.setRangeText(event.key, field.selectionStart, field.selectionEnd, "end");
  else if (event.key === "Backspace") field.setRangeText("", Math.max(0, field.selectionStart - (field.selectionStart === field.selectionEnd)), field.selectionEnd, "end");
  else return;
  field.oninput?.({target: field});
}
function focus(selector) { const e = document.querySelector(selector); e?.scrollIntoView({block: "nearest"}); e?.focus() }

// --- labels
const choosing = () => !!D && D.group.length > 0 && (queue === "conflicts" || queue === "duplicates");
function edit(name, value) { set(name, value); drawForm() }
function addFact() {
  const text = String(getSelection() ?? "").trim();
  if (!text) return focus("[data-new=expected_facts]");
  getSelection().removeAllRanges();
  edit("expected_facts", [...label("expected_facts"), text]);
  drawRow();
}
function takeAnswer() {
  if (!writesResponse) { writesResponse = true; drawForm() }
  else if (D.answer && !label("expected_response")) edit("expected_response", D.answer);
  focus("#response");
}
let writesResponse = false;
const uris = () => [...new Set(D.documents.map(d => d.uri).filter(uri => uri !== null))];
function mark(i) {
  const uri = uris()[i];
  if (uri === undefined) return;
  const marks = new Map(Object.entries(label("documents"))), was = marks.get(uri);
  if (was === true) marks.set(uri, false); else if (was === false) marks.delete(uri); else marks.set(uri, true);
  edit("documents", Object.fromEntries(marks));
  drawRow();
}
function fix(choice) {
  const open_ = D.fixes.find(f => !L[f.path]);
  if (!open_) return;
  if (D.fixes.every(f => f === open_ || L[f.path])) decide("submitted", () => set(open_.path, choice)); else { set(open_.path, choice); drawAll() }
}
async function fixKind() {
  const open_ = D.fixes.find(f => !L[f.path]) ?? D.fixes[0];
  await flush();
  try { took(await api.kind(open_.kind, "accept")) } catch (error) { return shown(`Not saved: ${error.message}`, true) }
  go(1);
}
const group = () => [D, ...D.group].map(g => ({n: g.n, id: g.id, state: g.state, dropped: g.state.dropped, truth: Object.fromEntries(LABELS.map(k => [k, g.state[k] ?? g.truth[k]]))}));
const TRUTHS = ["expected_facts", "expected_response", "guidelines", "documents", "reference_trajectory"];
// What a row has without the choice: a second thought starts from it, not from what the first one gave.
const ownTruth = g => ({...g.truth, ...(g.state.before ?? {})});
function give(target, truth, choice) {
  const own = ownTruth(target);
  if (!target.state.before) set("before", Object.fromEntries(TRUTHS.map(k => [k, own[k]])), false, target.n);
  for (const k of TRUTHS) if (!same(target.truth[k], truth[k])) set(k, structuredClone(truth[k]), false, target.n);
  set("choice", choice, false, target.n);
}
function choose(i) {
  const all = group(), right = all[i];
  if (!right) return;
  const truth = ownTruth(right);
  decide("submitted", () => { for (const one of all) give(one, truth, `row ${right.n}`) });
}
function mergeGroup() {
  const all = group(), own = all.map(ownTruth), truth = structuredClone(own[0]);
  truth.expected_facts = [...new Set(own.flatMap(t => t.expected_facts?.length ? t.expected_facts : t.expected_response ? [t.expected_response] : []))];
  truth.expected_response = "";
  truth.guidelines = [...new Set(own.flatMap(t => t.guidelines ?? []))];
  truth.documents = Object.fromEntries(own.flatMap(t => Object.entries(t.documents ?? {})));
  decide("submitted", () => { for (const one of all) give(one, truth, "merged") });
}
let undoing = Promise.resolve();  // one after the other: an answer that is overtaken would show an earlier state
function undo() { return undoing = undoing.then(undoOne) }
async function undoOne() {
  await flush();
  if (steps.length) return;  // the header has said why
  try {
    const answer = await api.undo();
    for (const n of answer.rows) details.delete(n);
    took(answer);
    if (!answer.rows.length) return shown("Nothing to undo");
    const n = answer.rows.includes(D?.n) ? D.n : answer.rows[0], place = rows.indexOf(n);
    if (place >= 0) { at = place; open(n, true) } else pick("all", n);
    drawQueues();
  } catch (error) { shown(`Not saved: ${error.message}`, true) }
}
async function refresh() {
  await flush();
  try { await api.refresh(); O = await api.overview() } catch (error) { return shown(`The queues cannot be made anew: ${error.message}`, true) }
  details.clear();
  for (const [n, state] of local) if (state.status) O.states[n] = state.status;
  pick(O.queues.some(q => q.name === queue) ? queue : "all", D?.n);
}

// --- drawing
const HEIGHT = 52;
function drawQueues() {
  const all = [...O.queues, ...(hits.length || queue === "search" ? [{name: "search", title: "Search", rows: hits}] : [])];
  $("queues").replaceChildren(...all.map(q => button([q.title, " ", el("span", {class: "muted"}, q.rows.length.toLocaleString("en"))], () => pick(q.name), null, {"aria-pressed": String(q.name === queue)})));
  const done = O.progress.done[queue] ?? rows.filter(n => O.states[n] === "submitted").length, empty = O.progress.empty?.[queue] ?? 0;
  const share = rows.length ? 100 * done / rows.length : 0;
  $("bar").firstChild.style.width = share + "%";
  $("bar").setAttribute("aria-valuenow", Math.round(share));
  $("done").textContent = `${done.toLocaleString("en")} of ${rows.length.toLocaleString("en")}${empty ? ` · ${empty.toLocaleString("en")} submitted without a label` : ""}`;
}
const MARKS = {submitted: "✓", skipped: "–", flagged: "!"};
function drawList() {
  const list = $("list"), first = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - 3), most = Math.ceil((list.clientHeight || 600) / HEIGHT) + 7;
  $("inner").style.height = rows.length * HEIGHT + "px";
  const items = [];
  for (let i = first; i < Math.min(rows.length, first + most); i++) {
    const n = rows[i], status = O.states[n];
    const item = el("div", {class: "item", role: "option", id: "item" + i, "aria-selected": String(i === at), "aria-setsize": rows.length, "aria-posinset": i + 1, onclick: () => { at = i; open(n) }},
      el("span", {class: "mark", title: status ?? ""}, MARKS[status] ?? (Object.keys(local.get(n) ?? {}).length ? "◐" : "")),
      el("span", {}, O.titles[n] || "(no question)"), el("span", {class: "muted"}, `row ${n}${O.ids[n] ? " · " + O.ids[n] : ""}`));
    item.style.top = i * HEIGHT + "px";
    items.push(item);
  }
  $("inner").replaceChildren(...items);
  if (rows.length) list.setAttribute("aria-activedescendant", "item" + at); else list.removeAttribute("aria-activedescendant");
}
function see() { const list = $("list"), top = at * HEIGHT; if (top < list.scrollTop || top + HEIGHT > list.scrollTop + list.clientHeight) list.scrollTop = Math.max(0, top - 150) }
function drawAll() { see(); drawList(); drawQueues(); writesResponse = D ? !!label("expected_response") : false; drawRow(); drawForm() }

const h2 = (...words) => el("h2", {}, ...words);
function callText(c) { return `${c.tool_name}(${JSON.stringify(c.tool_input ?? {}, null, 1)})` }
const callOf = c => [c.tool_name, JSON.stringify(c.tool_input ?? {})];
function drawRow() {
  const box = $("row");
  markdown.trees = new Map(D?.trees);
  if (!D) return box.replaceChildren(el("p", {class: "muted"}, queue === "search" ? "No row has this text." : "There is no row in this queue."));
  const asks = D.turns.findLastIndex(t => t.role === "user"), hidden = hideAnswer && !isLabeled();
  const place = [`row ${D.n}`, D.line && `line ${D.line}`, D.id].filter(Boolean).join(" · ");
  const question = drawQuestion();
  box.replaceChildren(...[
    question && el("div", {class: "question", role: "group", "aria-label": "what is to be decided"}, question),
    h2("Conversation · ", place, L.dropped ? " · dropped" : ""),
    D.turns.map((t, i) => turnOf(t.role, t.text, {kind: i === asks ? "asks" : "", calls: t.calls.map(callOf), more: (t.images ?? []).map(src => el("img", {src, alt: "image of the message"}))})),
    D.source && [h2("The cells of the row"), D.source.map(([k, v]) => el("div", {class: "box"}, el("b", {}, k), text(v)))],
    D.trees?.length > 0 && el("p", {}, command("raw", markdown.raw ? "Show Markdown rendered" : "Show the raw text")),
    D.fixes.length > 0 && queue !== "fixes" && [h2(plural(D.fixes.length, "fix").replace("fixs", "fixes")), D.fixes.map(drawFix)],
    (D.answer || D.error) && [h2("Answer of the agent (not ground truth)"), hidden ? el("div", {class: "box muted"}, "Hidden until the first label.", " ", command("hide", "Show")) : el("div", {class: "box", id: "answer"}, rich(D.answer ?? ""), D.error && el("p", {class: "error"}, D.error))],
    D.calls.length > 0 && [h2("Tool calls of the agent"), el("div", {class: "box"}, callsOf(D.calls.map(c => ({predicted: {tool: c.tool_name, input: JSON.stringify(c.tool_input ?? {}), mark: ""}}))), command("calls", "Expect these calls"))],
    D.documents.length > 0 && [h2("Retrieved documents: which ones answer the question?"), unheld("documents"), D.documents.map(drawDocument)],
    D.steps.length > 0 && [h2("Steps of the trace"), D.steps.map(spanOf)],
    D.others.length > 0 && queue !== "together" && drawOthers(),
  ].flat(9).filter(Boolean));
}
// what the queue asks of the row, before everything else
function drawQuestion() {
  const errors = (checked?.issues ?? []).filter(i => i.severity === "error");
  if (queue === "fixes" && D.fixes.length) return [h2(D.fixes.length === 1 ? "Is this fix right?" : "Are these fixes right?"), D.fixes.map(drawFix)];
  if (queue === "errors") return [h2("What is wrong, and only a person can correct"), errors.map(drawIssue), !errors.length && el("p", {class: "good"}, "The rules report no error with your labels.")];
  if (choosing()) return drawGroup();
  if (queue === "together" && D.others.length) return drawOthers();
  if (D.changed) return [h2("The row has changed since your label: is the label still right?"), D.changed.map(drawChange),
    !D.changed.length && el("p", {class: "issue warning"}, "The journal does not have the row as it was."), el("p", {class: "muted"}, "Submit the row again if it is.")];
}
const drawChange = c => el("div", {}, el("b", {}, c.field), c.old !== null && el("del", {}, c.old), c.new !== null && el("ins", {}, c.new));
const drawIssue = i => el("div", {class: "issue " + i.severity}, el("b", {}, `${i.code} ${i.name}`), ` ${i.path ? i.path + ": " : ""}${i.message}`, i.excerpt && el("pre", {class: "excerpt"}, i.excerpt[0], el("mark", {}, i.excerpt[1]), i.excerpt[2]), i.hint && el("div", {class: "muted"}, i.hint));
function drawOthers() {
  return [h2("What others decided"), D.others.map(o => el("div", {class: "box"}, el("h3", {}, o.by), truthOf({...EMPTY, ...o.state}), button("Take over", () => { step(() => { for (const k of LABELS) if (o.state[k] !== undefined && !same(o.state[k], L[k])) set(k, structuredClone(o.state[k])) }); drawAll() }))), command("together", "We decided this together")];
}
function truthOf(t, common) {
  return [
    t.expected_facts.length > 0 && el("ul", {}, t.expected_facts.map(f => el("li", {}, marked(f, common)))), t.expected_response && el("p", {class: "text"}, marked(t.expected_response, common)),
    t.guidelines.length > 0 && [el("b", {}, "guidelines"), el("ul", {}, t.guidelines.map(f => el("li", {}, f)))],
    Object.keys(t.documents).length > 0 && el("ul", {}, Object.entries(t.documents).map(([u, is]) => el("li", {class: "uri"}, `${is ? "relevant" : "not relevant"}: ${u}`))),
    t.reference_trajectory.map(c => el("pre", {}, callText(c))),
  ];
}
function drawGroup() {
  const all = group(), sets = all.map(g => wordsIn([...g.truth.expected_facts, g.truth.expected_response].join(" "))), common = new Set([...sets[0]].filter(w => sets.every(own => own.has(w))));
  return [h2(D.conflicting ? "These rows ask the same and expect different answers: which one is right?" : "These rows ask the same"),
    el("div", {class: "side"}, all.map((g, i) => el("div", {class: "box" + (L.choice === `row ${g.n}` ? " chosen" : "")},
      el("h3", {class: g.dropped ? "dropped" : ""}, `row ${g.n}${g.id ? " · " + g.id : ""}`), truthOf(g.truth, common),
      el("p", {}, button(["Right", i < 9 && el("kbd", {"aria-hidden": "true"}, String(i + 1))].filter(Boolean), () => choose(i)), " ",
        button(g.dropped ? "Keep" : "Drop", () => { set("dropped", g.dropped ? null : true, false, g.n); drawAll() }))))),
    D.group_rest > 0 && el("p", {class: "issue warning"}, `${plural(D.group_rest, "more row")} ask the same and are not shown: no choice here changes them.`),
    el("p", {}, command("both", "All are right: merge the facts"), " ", command("differ", "The questions differ")),
    L.choice && el("p", {class: "good"}, `Decided: ${L.choice}`)];
}
function drawFix(f) {
  return el("div", {class: "box" + (L[f.path] === "accept" ? " chosen" : "")}, el("h3", {}, f.what), f.parts.map(p => [el("p", {class: "uri"}, p.path), el("del", {}, p.before), el("ins", {}, p.after)]),
    el("p", {}, L[f.path] ? el("b", {}, L[f.path] === "accept" ? "Accepted " : "Rejected ") : null,
      button("Accept", () => { set(f.path, "accept"); drawAll() }, "accept", {"aria-pressed": String(L[f.path] === "accept")}), " ", button("Reject", () => { set(f.path, "reject"); drawAll() }, "reject", {"aria-pressed": String(L[f.path] === "reject")}), " ",
      f.same > 1 && button(`Accept all ${f.same} of exactly this kind`, fixKind, "kind")));
}
function drawDocument(d) {
  if (d.uri === null) return documentOf("", d.content, el("span", {class: "muted"}, "no doc_uri: it cannot be expected"));
  const i = uris().indexOf(d.uri), is = new Map(Object.entries(label("documents"))).get(d.uri);
  const word = is === true ? "relevant" : is === false ? "not relevant" : "undecided";
  const card = documentOf(d.uri, d.content, el("kbd", {"aria-hidden": "true"}, String(i + 1)), button(word, () => mark(i), null, {"aria-label": `document ${i + 1}: ${word}`}));
  if (is !== undefined) card.classList.add(is ? "yes" : "no");
  return card;
}
function lineOf(name, i, value, props = {}) {
  const change = v => { const list = [...label(name)]; list[i] = v; set(name, list, true); checkLive() };
  return el("div", {class: "line"}, el(value.includes("\n") ? "textarea" : "input", {value, "aria-label": `${name} ${i + 1}`, oninput: e => change(e.target.value), onchange: flush, ...props}),
    button("×", () => { edit(name, label(name).filter((_, j) => j !== i)) }, null, {"aria-label": `remove ${name} ${i + 1}`}));
}
function newLine(name, placeholder, add) {
  const path = "draft:" + name, input = el("input", {"data-new": name, placeholder, "aria-label": placeholder, value: L[path] ?? (name in L ? "" : D.wrong?.[name] ?? ""), list: name === "expected_facts" ? "facts" : null, oninput: () => set(path, input.value || (D.wrong?.[name] ? "" : null), true)});
  input.take = () => { const v = input.value.trim(); if (v) step(() => { set(path, null); add(v) }); else if (D.wrong?.[name] && !(name in L)) step(() => { set(path, null); edit(name, label(name)) }); else if (L[path] !== undefined) set(path, null) };
  input.onkeydown = e => { if (e.key === "Enter" && !e.ctrlKey && !e.metaKey && !e.isComposing) { e.preventDefault(); input.take(); focus(`[data-new=${name}]`) } };
  return el("div", {class: "line"}, input, button("+", () => { input.take(); focus(`[data-new=${name}]`) }, null, {"aria-label": `add to ${name}`}));
}
const unheld = name => O.unheld.includes(name) && el("p", {class: "issue warning"}, `The format ${O.format} has no place for it: it stays in the journal.`);
const RATINGS = ["right", "partly", "wrong"];
// what other rows have, those of this page first
const used = (name, all) => [...new Set([...[...local.values()].flatMap(s => s[name] ?? []), ...all])].filter(t => !label(name).includes(t));
let guideOpen = true, drawn = null;  // the row of the form
function drawForm() {
  const box = $("form");
  if (!D) return box.replaceChildren();
  const add = name => v => edit(name, [...label(name), v]), offered = used("guidelines", O.guidelines).slice(0, 6);
  const active = document.activeElement, kept = drawn === D.n && box.contains(active) && active.selectionStart !== undefined && [active.getAttribute("aria-label"), active.selectionStart, active.selectionEnd];
  box.replaceChildren(...[
    [...conflicts.values()].filter(c => c.row === D.n).map(drawConflict),
    O.guide.length > 0 && el("details", {class: "box", id: "guide", open: guideOpen, ontoggle: e => { guideOpen = e.target.open }}, el("summary", {}, "Instructions of your team"), el("div", {class: "text rich"}, nodes(O.guide))),
    el("datalist", {id: "facts"}, used("expected_facts", O.facts).map(value => el("option", {value}))),
    h2("Expected facts: what must a right answer state?", badge("fact")), unheld("expected_facts"), label("expected_facts").map((f, i) => lineOf("expected_facts", i, f)), newLine("expected_facts", "one fact, then Enter", add("expected_facts")),
    writesResponse || label("expected_response") ? [h2("Expected response"), unheld("expected_response"), el("textarea", {id: "response", "aria-label": "expected response", value: label("expected_response"), oninput: e => { set("expected_response", e.target.value, true); checkLive() }, onchange: flush}), D.answer && !label("expected_response") && command("response", "Take over the answer of the agent")] : el("p", {}, command("response", "Write one expected response instead")),
    h2("Guidelines", badge("guideline")), unheld("guidelines"), label("guidelines").map((g, i) => lineOf("guidelines", i, g)), newLine("guidelines", "a guideline, then Enter", add("guidelines")),
    offered.length > 0 && el("p", {class: "muted"}, "In other rows: ", offered.map(g => [button(g, () => edit("guidelines", [...label("guidelines"), g])), " "])),
    h2("Expected tool calls", D.calls.length > 0 && badge("calls")), unheld("reference_trajectory"), label("reference_trajectory").map((c, i) => drawCall(c, i)), newLine("reference_trajectory", "the name of a tool, then Enter", v => edit("reference_trajectory", [...label("reference_trajectory"), {tool_name: v, tool_input: {}}])),
    h2("Tags", badge("tag")), unheld("tags"), el("p", {}, Object.entries(label("tags")).map(([k, v]) => [button([v === "true" ? k : `${k}: ${v}`, " ×"], () => edit("tags", Object.fromEntries(Object.entries(label("tags")).filter(([name]) => name !== k))), null, {"aria-label": `remove tag ${k}`}), " "])), newLine("tags", "tag, or name: value", v => { const [k, ...rest] = v.split(":"); edit("tags", Object.fromEntries([...Object.entries(label("tags")).filter(([name]) => name !== k.trim()), [k.trim(), rest.join(":").trim() || "true"]])) }),
    D.answer && [h2("Is the answer of the agent right?", badge("rate")), el("p", {role: "group", "aria-label": "rating of the answer"}, RATINGS.map(r => [button(r, () => edit("rating", L.rating === r ? null : r), null, {"aria-pressed": String(L.rating === r)}), " "])),
      (L.rating || L.reason) && el("textarea", {"aria-label": "reason of the rating", placeholder: "why", value: L.reason ?? "", oninput: e => set("reason", e.target.value || null, true), onchange: flush})],
    h2("Note for the others", badge("note")), el("textarea", {id: "note", "aria-label": "note for the others", value: L.note ?? "", oninput: e => set("note", e.target.value || null, true), onchange: flush}),
    el("div", {id: "live"}),
  ].flat(9).filter(Boolean));
  const field = kept && [...box.querySelectorAll("input, textarea")].find(e => e.getAttribute("aria-label") === kept[0]);
  if (field) { field.focus({preventScroll: true}); field.setSelectionRange(kept[1], kept[2]) }
  for (const e of box.querySelectorAll("textarea")) fit(e);
  drawn = D.n;
  drawLive();
}
// a field has the height of its text
function fit(e) { e.style.height = "auto"; e.style.height = e.scrollHeight + 2 + "px" }
function drawCall(c, i) {
  const change = part => { const list = structuredClone(label("reference_trajectory")); Object.assign(list[i], part); set("reference_trajectory", list, true); checkLive() };
  const problem = el("p", {class: "error"}), path = `draft:arguments ${i + 1}`, draft = j => `draft:arguments ${j + 1}`;
  const read = text => { try { const v = JSON.parse(text || "{}"); if (v === null || typeof v !== "object" || Array.isArray(v)) throw new Error("expected an object"); const lost = text.replace(/"(?:[^"\\]|\\.)*"/g, "").match(/-?\d[\d.eE+-]*/g)?.find(n => !Number.isFinite(+n) || (/^-?\d+$/.test(n) && BigInt(n) !== BigInt(+n))); if (lost) throw new Error(`${lost.slice(0, 40)}: expected a number of at most 15 digits, or a string`); problem.textContent = ""; return v } catch (error) { problem.textContent = `a draft, not yet part of the call: ${error.message}` } };
  const remove = () => step(() => {
    const all = label("reference_trajectory");
    for (let j = i; j < all.length; j++) if (L[draft(j)] || L[draft(j + 1)]) set(draft(j), L[draft(j + 1)] ?? null);
    edit("reference_trajectory", all.filter((_, j) => j !== i));
  });
  const given = el("textarea", {"aria-label": `arguments of call ${i + 1}`, class: "code", value: L[path] ?? JSON.stringify(c.tool_input ?? {}, null, 1), onchange: flush, oninput: () => { const v = read(given.value); set(path, v ? null : given.value, true); if (v) change({tool_input: v}) }});
  if (L[path] !== undefined) read(L[path]);
  return el("div", {class: "box"}, el("div", {class: "line"}, el("input", {value: c.tool_name, "aria-label": `tool ${i + 1}`, oninput: e => change({tool_name: e.target.value}), onchange: flush}), button("×", remove, null, {"aria-label": `remove call ${i + 1}`})), given, problem);
}
// the fields of the row with its labels: from the rules, or (without a server) from the labels
function fields() {
  if (!bundle && checked?.fields) return checked.usable ? checked.fields : [];
  const found = new Set(D.base ?? D.fields), put = (name, is) => is ? found.add(name) : found.delete(name);
  if ("expected_facts" in L) put("expected_facts", L.expected_facts.length);
  if ("expected_response" in L) put("expected_response", L.expected_response);
  put("one_truth", found.has("expected_facts") !== found.has("expected_response"));
  if ("guidelines" in L) put("guidelines", L.guidelines.length);
  if ("documents" in L) put("expected_uri", Object.values(label("documents")).includes(true));
  if ("reference_trajectory" in L) put("reference_trajectory", L.reference_trajectory.length);
  return [...found];
}
const FIELD = {expected_uri: "relevant documents", expected_facts: "facts", expected_response: "a response", reference_trajectory: "expected calls", one_truth: "facts or a response"};
function drawLive() {
  const live = $("live");
  if (!live || !D) return;
  const now = new Set([...fields(), ...O.made]), before = new Set([...(D.base ?? []), ...O.made]), ok = (m, have) => m.needs.every(n => n.some(f => have.has(f)));
  const short = m => m.split("/").filter(p => !["response", "llm_judged", "rating", "retrieval", "agent", "ground_truth"].includes(p)).join("/") || m;
  const has_ = O.metrics.filter(m => ok(m, now)), gained = has_.filter(m => !ok(m, before)), kept = has_.filter(m => ok(m, before));
  const near = O.metrics.filter(m => !ok(m, now)).map(m => [m, m.needs.filter(n => !n.some(f => now.has(f)))]).filter(([, missing]) => missing.length === 1 && missing[0].some(f => ["expected_facts", "expected_response", "guidelines", "expected_uri", "reference_trajectory", "one_truth"].includes(f)));
  live.replaceChildren(...[
    checked?.issues?.length > 0 && h2("Rules"), (checked?.issues ?? []).map(drawIssue),
    checked?.unheld?.length > 0 && el("div", {class: "issue warning"}, `The format ${O.format} cannot hold: ${checked.unheld.join(", ")}. It stays in the journal.`),
    h2("What this row can be scored with"), el("ul", {class: "plain"}, gained.map(m => el("li", {class: "gained"}, "+ " + short(m.name))), kept.map(m => el("li", {}, "✓ " + short(m.name))), near.slice(0, 6).map(([m, missing]) => el("li", {class: "muted"}, `○ ${short(m.name)}: add ${missing[0].map(f => FIELD[f] ?? f).join(" or ")}`))),
    h2("The whole file"), el("ul", {class: "plain muted"}, O.coverage.filter(c => c.rows).map(c => el("li", {}, `${short(c.metric)}: ${plural(c.rows, "row")} · ± ${Math.round(c.half)} points`))),
    O.agreement.length > 0 && [h2("Agreement"), el("ul", {class: "plain"}, O.agreement.map(a => el("li", {}, a.text)))],
  ].flat(9).filter(Boolean));
}

// --- dialogs
function sheet(...content) { $("sheet").replaceChildren(...content.flat(9).filter(Boolean)); if (!$("sheet").open) $("sheet").showModal() }
const close = () => button("Close", () => $("sheet").close());
const title = words => el("h2", {id: "sheettitle"}, words);
function help() { sheet(title("Keys (off while you type)"), el("table", {}, el("tbody", {}, KEYS.map(k => el("tr", {}, el("td", {}, el("kbd", {}, k.show)), el("td", {}, k.keys.length < 9 && (k.when ?? always)() ? button(k.text, () => { $("sheet").close(); k.run() }) : k.text))))), el("p", {}, close())) }
async function write(what = "mine") {
  takeTyped();
  await flush();
  const head = title(what === "mine" ? "Write my labels" : "Write what all agree on");
  if (steps.length) return sheet(head, el("p", {class: "error"}, `${plural(steps.length, "step")} could not be saved yet, so the file would lack them.`), close());
  let p;
  sheet(head, el("p", {role: "status"}, "The file is compared …"));
  try { p = await api.preview(what) } catch (error) { return sheet(head, el("p", {class: "error"}, error.message), close()) }
  const path = el("input", {value: p.out, "aria-label": "path of the reviewed file", id: "out"}), told = el("div", {role: "status"});
  const run = async replace => {
    const bar = el("progress", {"aria-label": "writing"}), words = el("p", {}, "Writing …");
    told.replaceChildren(words, bar);
    const asking = setInterval(() => api.progress().then(p => { words.textContent = `Writing … ${p.text}`; if (p.share === null) bar.removeAttribute("value"); else bar.value = p.share }).catch(() => 0), 300);
    try {
      const done = await api.write(path.value, what, replace).finally(() => clearInterval(asking));
      if (done.exists) return told.replaceChildren(el("p", {}, `${done.exists} exists. `, button("Replace it", () => run(true)), " ", button("Keep it", () => { told.replaceChildren(); path.focus() })));
      told.replaceChildren(el("p", {class: "good"}, `Written to ${done.path}: ${done.valid.toLocaleString("en")} of ${plural(done.rows, "row")} valid (before: ${done.valid_before.toLocaleString("en")}).`), el("ul", {}, done.gained.map(g => el("li", {}, `${g.metric}: ${g.before.toLocaleString("en")} → ${g.after.toLocaleString("en")} rows`))), el("p", {}, "Next:"), el("pre", {}, done.next.join("\n")));
      told.scrollIntoView({block: "end"});
    } catch (error) { told.replaceChildren(el("p", {class: "error"}, error.message)) }
  };
  const list = el("div", {class: "changes", tabindex: "0", role: "region", "aria-label": "changes"});
  const more = (from, last) => {
    last?.remove();
    list.append(...p.changes.slice(from, from + 100).map(c => drawChange({...c, field: `row ${c.row}${c.id ? " · " + c.id : ""} · ${c.field}`})));
    const next = button(`Show more of ${plural(p.count, "change")}`, () => more(from + 100, next));
    if (from + 100 < p.changes.length) list.append(next);
    else if (p.count > p.changes.length) list.append(el("p", {class: "muted"}, `${plural(p.count - p.changes.length, "more change")}: the diff command shows them.`));
  };
  more(0);
  sheet(head,
    p.reviewers > 1 && el("p", {}, button("My labels", () => write("mine"), null, {"aria-pressed": String(what === "mine")}), " ", button(`What all ${p.reviewers} reviewers agree on`, () => write("agreed"), null, {"aria-pressed": String(what === "agreed")})),
    el("ul", {}, p.summary.map(s => el("li", {}, s))), el("p", {class: "muted"}, `${O.file} itself is not changed.`),
    p.hidden ? el("p", {}, `The changes are shown when you have submitted the ${plural(p.hidden, "row")} that only others have labeled.`) : p.count > 0 && list,
    el("div", {class: "line"}, path, button("Write", () => run(false), null, {class: "first"})), told, el("p", {}, close()));
}
function download() {
  const link = el("a", {download: held.journal, href: URL.createObjectURL(new Blob([bundle.journal()], {type: "application/x-ndjson"}))});
  link.click();
  URL.revokeObjectURL(link.href);
  shown(`The journal was downloaded: ${held.journal}`);
}

// --- start
async function start() {
  try { O = await api.overview(); await adopt(); listen() } catch (error) { document.querySelector("main").replaceChildren(el("p", {class: "error", role: "alert"}, error.status === 403 ? "This address lacks its token: open the one that the command printed." : `The review cannot be read: ${error.message}`)); return }
  $("file").textContent = O.file; $("by").textContent = O.reviewer; document.title = `review ${O.file}`;
  $("about").textContent = `${plural(O.titles.length, "row")} · ${O.format}`;
  $("notes").replaceChildren(...O.notes.map(n => el("p", {}, n)));
  $("tools").replaceChildren(command("write", bundle ? "Download journal" : "Write file…"), " ", button("?", help, null, {"aria-label": "all keys"}));
  $("actions").replaceChildren(command("submit", "Submit, next", {class: "first"}), command("skip", "Skip"), command("flag", "Needs another person"), command("drop", "Drop or keep"), command("undo", "Undo"), el("span", {class: "room"}), button("Rows", () => { if (document.body.classList.toggle("rows")) scrollTo(0, 0); drawList() }, null, {id: "rows"}), command("previous", "Previous"), command("next", "Next"));
  document.onkeydown = pressed;
  $("list").onscroll = drawList;
  $("form").oninput = e => { if (e.target.tagName === "TEXTAREA") fit(e.target) };
  let typed = 0;
  $("find").oninput = () => { clearTimeout(typed); typed = setTimeout(async () => { const q = $("find").value.trim(); hits = q ? (await api.search(q)).rows : []; if ($("find").value.trim() !== q) return; if (q) pick("search"); else if (queue === "search") pick(O.queue); else drawQueues() }, 200) };
  addEventListener("hashchange", () => { const p = params(); if (p.get("row") !== null && +p.get("row") !== D?.n) pick(p.get("q") ?? "all", +p.get("row")) });
  addEventListener("pagehide", flush);
  addEventListener("beforeunload", e => { flush(); if (!place && (steps.length || conflicts.size)) e.preventDefault() });
  send();
  const p = params();
  pick(p.get("q") && O.queues.some(q => q.name === p.get("q")) ? p.get("q") : O.queue, p.get("row") === null ? undefined : +p.get("row"));
}
start();
}
