{
const all = s => [...document.querySelectorAll(s)], one = s => document.querySelector(s);
const list = one("#rowlist"), data = list && JSON.parse(one("#data").textContent), count = n => n.toLocaleString("en");
const items = all(".issues > details, .rows:not(.still) > tbody"), searches = all("[type=search]"), found = one("#found");
let filter = "", picked = null, title = "", term = "", rows = [], start = -1, open = null, shown = [], sorted = null, up = 1;
const hit = t => t.toLowerCase().includes(term), root = path => path.split(/[.[]/)[0];
const content = r => [...[...(r.turns ?? []).map(([path, , said]) => [path, said]), ...(r.expected ?? [])].map(([path, t]) => [root(path), t]), ...(r.answers ?? []), ...(r.cells ?? [])];
const textOf = r => r.text ??= [r.row, r.id, r.title, r.codes, r.columns, r.turns, r.answers, r.expected, r.scores, r.documents, r.calls?.flatMap(([, pairs]) => pairs.flatMap(p => [p.predicted, p.reference])).map(c => c && [c.tool, c.input]), r.cells, r.spans, r.issues.map(i => data.issues[i])].flat(9).join(" ").toLowerCase();
const value = (r, name) => content(r).findLast(([own]) => own === name)?.[1] ?? "";
const question = r => r.title ?? (r.turns?.findLast(t => t[1] === "user") ?? r.turns?.at(-1))?.[2] ?? value(r, "request");
const hasStatus = data?.rows.some(r => r.valid !== undefined), numeric = data?.heads.map((_, i) => data.rows.some(r => r.columns[i][2] !== null));
if (data) {
  const used = new Map();
  for (const r of data.rows) {
    const times = used.get(r.row) ?? 0;
    r.codes ??= [], r.issues ??= [];
    used.set(r.row, times + 1);
    r.hash = "#row-" + encodeURIComponent(r.row) + (times ? "." + (times + 1) : "");
  }
  markdown.trees = new Map(data.trees);
}
function draw() {
  let n = 0;
  for (const e of items) {
    const s = e.dataset;
    e.hidden = (filter === "fixable" ? !s.fixable : filter && s.severity !== filter) || !hit(e.textContent);
    n += !e.hidden;
  }
  if (list) drawRows();
  if (found) found.textContent = `${n} of ${items.length} ${found.dataset.of}${n ? "" : ", all of whose text was searched"}${list && term ? `; rows below: ${count(rows.length)}` : ""}`;
}
function drawRows() {
  rows = data.rows.filter(r => (!picked || picked(r)) && textOf(r).includes(term));
  const heads = ["Row", ...(hasStatus ? ["Status"] : []), "Question", ...data.heads, ...shown];
  const key = r => sorted === "Row" ? r.row : sorted === "Status" ? r.valid + r.codes.join() : sorted === "Question" ? question(r) : data.heads.includes(sorted) ? r.columns[data.heads.indexOf(sorted)][2] ?? r.columns[data.heads.indexOf(sorted)][0] : value(r, sorted);
  if (sorted) rows.sort((a, b) => { const [x, y] = [key(a), key(b)]; return up * (typeof x === "number" && typeof y === "number" ? x - y : (typeof x === "number") - (typeof y === "number") || String(x).localeCompare(String(y), "en", {numeric: true})) });
  const every = `${count(data.rows.length)} ${data.noun}` + (data.rows.length < data.total ? " in this page" : "");
  one("#rowcount").textContent = rows.length ? `${count(rows.length)} of ${every}${title}`
    : `No row${title} has “${term}”. Searched: the numbers, IDs, codes, issues and all texts of ${every}.`;
  one("#all").hidden = !picked && !term;
  list.firstChild.rows[0].replaceChildren(...heads.map(name => el("th", {scope: "col", class: name === "Status" ? "status" : numeric[data.heads.indexOf(name)] ? "n" : null, "aria-sort": sorted === name ? up > 0 ? "ascending" : "descending" : null},
    el("button", {class: "link", onclick: () => { [sorted, up] = [name, sorted === name ? -up : 1]; drawRows() }}, breakable(name)))));
  list.firstChild.style.minWidth = 26 + 12 * shown.length + 7 * data.heads.length + "em";
  start = -1;
  scroll();
}
function scroll() {
  const body = list.firstChild.tBodies[0], height = body.querySelector("tr:not(.space)")?.offsetHeight || 33, first = Math.max(0, Math.floor(list.scrollTop / height / 20) * 20 - 20);
  if (first === start) return;
  const some = rows.slice(start = first, first + 80), space = n => { const e = el("tr", {class: "space"}); e.style.height = n * height + "px"; return e };
  body.replaceChildren(space(first), ...some.map(line), space(rows.length - first - some.length));
}
function line(r) {
  const status = hasStatus && el("td", {class: r.valid ? "good" : "error"}, r.valid ? "valid " : "invalid ", el("span", {class: "muted"}, r.codes.join(", ")));
  return el("tr", {class: r === open ? "open" : "", onclick: () => { location.hash = r.hash }}, el("th", {scope: "row", class: r.failed ? "error" : null}, el("a", {href: r.hash}, r.row)), status,
    el("td", {}, r.failed && el("span", {class: "tag error"}, "failed "), question(r).slice(0, 200)), (r.columns ?? []).map(([words, mood], i) => el("td", {class: (numeric[i] ? "n " : "") + mood}, words)), shown.map(name => el("td", {}, value(r, name).slice(0, 200))));
}
function detail(r) {
  const left = new Set(r.issues.map(i => data.issues[i])), under = path => [...left].filter(i => i[2] === path || i[3] === path || /^[.[]/.test(i[3].startsWith(path) ? i[3].slice(path.length) : "")).map(i => { left.delete(i); return issue(i) });
  const asks = (r.turns ?? []).findLastIndex(t => t[1] === "user"), part = (name, ...found) => found.flat(9).some(e => e) && [el("h3", {}, name), found];
  const turns = (r.turns ?? []).map(([path, role, said, calls], i) => turnOf(role, said, {kind: i === asks ? "asks" : "", calls, more: under(path)}));
  const expected = r.expected ?? [], answers = r.answers ?? [], beside = answers.length + expected.length > 0 && besideOf(expected, answers, under);
  const scores = (r.scores ?? []).map(([name, words, mood, reason]) => el("tr", {}, el("th", {scope: "row"}, name), el("td", {class: "n " + mood}, words), el("td", {}, reason && rich(reason))));
  const documents = (r.documents ?? []).map(([path, uri, t]) => documentOf(uri, t, null, el("div", {}, under(path))));
  const edits = (r.edits ?? []).map(([path, pieces]) => el("p", {}, el("span", {class: "path"}, path), " ", pieces.map(([side, t]) => el({old: "del", new: "ins"}[side] ?? "span", {}, t))));
  const cells = (r.cells ?? []).flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, el("span", {class: "cell"}, v), under(k))]);
  const at = rows.indexOf(r), step = (way, name) => el("button", {disabled: !rows[at + way], onclick: () => go(at + way)}, name);
  const about = [r.line ? "line " + r.line : "", r.id ?? "", at < 0 ? "" : `${count(at + 1)} of ${count(rows.length)}`].filter(s => s).join(" · ");
  const raw = [...content(r).map(c => c[1]), ...(r.documents ?? []).map(d => d[2])].some(t => markdown.trees.has(t)) && el("button", {onclick: toggle}, markdown.raw ? "Show Markdown rendered (M)" : "Show the raw text (M)");
  const isEmpty = !turns.length && !beside && !cells.length && !documents.length;
  one("#row").replaceChildren(...[el("p", {class: "tools"}, el("b", {}, `Row ${r.row}`), r.valid !== undefined && el("span", {class: r.valid ? "good" : "error"}, r.valid ? "valid" : "invalid"), el("span", {class: "muted"}, about), step(-1, "Previous (K)"), step(1, "Next (J)"), raw),
    [...left].map(issue), turns, beside, scores.length > 0 && el("table", {class: "ofrow"}, el("tbody", {}, scores)), part(data.edits, edits), part("Retrieved documents", documents),
    (r.calls ?? []).map(([name, pairs]) => part(name, callsOf(pairs))), part("Steps of the trace", (r.spans ?? []).map(spanOf)), cells.length > 0 && el("dl", {}, cells), isEmpty && text("The page has no cells of this row.", "muted")].flat(9).filter(e => e));
}
function toggle() { markdown.raw = !markdown.raw; if (open) detail(open) }
function issue([code, severity, , path, message, hint]) {
  return el("p", {class: "found"}, el(one("#" + code) ? "a" : "b", {class: severity, href: one("#" + code) ? "#" + code : null}, code), " ", el("span", {class: "path"}, path), " " + message, el("span", {class: "muted"}, hint && " → " + hint));
}
function go(at) { if (rows[at]) location.replace(rows[at].hash) }
function pick(test, words) { [picked, title] = [test, words]; find(""); one("#rows").scrollIntoView() }
function find(words) { term = words.toLowerCase(); for (const s of searches) if (s.value !== words) s.value = words; if (list) list.scrollTop = 0; draw() }
const filters = all("[data-filter]");
for (const b of filters) b.onclick = () => {
  filter = b.dataset.filter;
  for (const o of filters) o.ariaPressed = o === b;
  draw();
};
for (const s of searches) s.oninput = () => find(s.value);
for (const s of all("#sort")) s.onchange = () => {
  const k = s.value, v = d => k == "rows" ? -d.dataset.rows : k ? d.id : items.indexOf(d);
  one(".issues").append(...[...items].sort((a, b) => v(a) < v(b) ? -1 : 1));
};
const button = (e, onclick) => e.append(el("button", {class: "link", onclick}, ...e.childNodes));
for (const t of all(".rows:not(.still)")) [...t.tHead.rows[0].cells].forEach((h, i, heads) => button(h, () => {
  const way = h.ariaSort === "ascending" ? -1 : 1, v = ({rows: [r]}) => r.cells[i].dataset.n ?? r.cells[i].textContent;
  const n = b => parseFloat(v(b).replaceAll(",", ""));
  for (const o of heads) o.ariaSort = o !== h ? null : way > 0 ? "ascending" : "descending";
  t.append(...[...t.tBodies].sort((a, b) => way * (n(a) - n(b) || v(a).localeCompare(v(b)))));
}));
if (list) {
  for (const e of all("[data-metric]")) {
    const has = r => data.sets[r.metrics].includes(+e.dataset.metric), of = data.rows.length < data.total ? `, of ${e.dataset.rows} in the dataset` : "";
    button(e, () => pick(has, ` that support ${e.textContent}${of}`));
  }
  one("#all").onclick = () => pick(null, "");
  list.onscroll = scroll;
  list.style.setProperty("--row", 1.5 + .6 * data.rows.reduce((most, r) => Math.max(most, String(r.row).length), 4) + "em");
  for (const name of new Set(data.rows.flatMap(r => content(r).map(([own]) => own)))) {
    const box = el("input", {type: "checkbox", onchange: () => { shown = box.checked ? [...shown, name] : shown.filter(n => n !== name); drawRows() }});
    one("#columns").append(el("label", {}, box, " " + name));
  }
}
const addressed = () => list ? data.rows.find(r => r.hash === location.hash) ?? null : null;
onkeydown = e => {
  const way = {j: 1, k: -1}[e.key];
  if (e.ctrlKey || e.metaKey || e.altKey || !list || /INPUT|SELECT/.test(e.target.tagName)) return;
  if (e.key === "m") toggle();
  if (!way) return;
  const row = addressed();  // a key may come before hashchange does
  if (row) go(rows.indexOf(row) + way); else if (rows[0]) location.hash = (rows[rows.indexOf(open) + way] ?? rows[0]).hash;
};
for (const b of all(".copy")) b.onclick = async () => {
  try { await navigator.clipboard.writeText(b.previousElementSibling.textContent); b.textContent = "Copied" }
  catch { getSelection().selectAllChildren(b.previousElementSibling) }
};
onhashchange = () => {
  const d = items.find(d => "#" + d.id === location.hash), was = open, named = addressed();
  if (d) d.open = true;
  if (!list) return;
  open = named ?? (list.dataset.opens ? data.rows[0] : null);
  if (open && !rows.includes(open)) { [picked, title] = [null, ""]; find("") }
  one("#row").hidden = !open;
  if (open) detail(open);
  if (named) {
    const height = list.firstChild.tBodies[0].rows[1].offsetHeight, top = rows.indexOf(open) * height;
    if (top < list.scrollTop || top > list.scrollTop + list.clientHeight - 3 * height) list.scrollTop = Math.max(0, top - 3 * height);
    if (!was || list.dataset.opens) list.scrollIntoView({block: "nearest"});
    if (!was) list.scrollIntoView();
    one("#row").focus({preventScroll: true});
  }
  start = -1;
  scroll();
};
for (const e of all("[data-script], .nojs")) e.hidden = !e.hidden;
draw();
onhashchange();
}
