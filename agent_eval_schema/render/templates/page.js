{
const all = s => [...document.querySelectorAll(s)], one = s => document.querySelector(s);
const el = (tag, cls, ...parts) => { const e = document.createElement(tag); e.className = cls; e.append(...parts); return e };
const list = one("#rowlist"), data = list && JSON.parse(one("#data").textContent), count = n => n.toLocaleString("en");
const items = all(".issues > details, .rows > tbody"), searches = all("[type=search]"), found = one("#found");
let filter = "", picked = null, title = "", term = "", rows = [], start = -1, open = null, shown = [];
const hit = text => text.toLowerCase().includes(term);
const text = r => r.text ??= [r.row, r.id, ...r.codes, ...(r.turns ?? []), ...(r.cells ?? []), ...(r.spans ?? []), ...r.issues.map(i => data.issues[i])].flat().join(" ").toLowerCase();
const value = (r, name) => r.cells?.find(c => c[0] === name)?.[1] ?? r.turns?.findLast(t => t[0].split(/[.[]/)[0] === name)?.[2] ?? "";
const question = r => (r.turns?.findLast(t => t[1] === "user") ?? r.turns?.findLast(t => t[0] !== "response"))?.[2] ?? value(r, "request");
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
  rows = data.rows.filter(r => (!picked || picked(r)) && text(r).includes(term));
  const all = `${count(data.rows.length)} rows` + (data.rows.length < data.total ? " in this page" : "");
  one("#rowcount").textContent = rows.length ? `${count(rows.length)} of ${all}${title}`
    : `No row${title} has “${term}”. Searched: the numbers, IDs, codes, issues and all texts of ${all}.`;
  one("#all").hidden = !picked && !term;
  list.firstChild.rows[0].replaceChildren(...["Row", "Status", "Question", ...shown].map(name => Object.assign(el("th", "", name), {scope: "col"})));
  list.firstChild.style.minWidth = 26 + 12 * shown.length + "em";
  start = -1;
  scroll();
}
function scroll() {
  const body = list.firstChild.tBodies[0], height = body.querySelector("tr:not(.space)")?.offsetHeight || 33, first = Math.max(0, Math.floor(list.scrollTop / height / 20) * 20 - 20);
  if (first === start) return;
  const some = rows.slice(start = first, first + 80), space = n => { const e = el("tr", "space"); e.style.height = n * height + "px"; return e };
  body.replaceChildren(space(first), ...some.map(line), space(rows.length - first - some.length));
}
function line(r) {
  const link = Object.assign(el("a", "", `${r.row}`), {href: "#row-" + r.row}), head = Object.assign(el("th", "", link), {scope: "row"});
  const cells = [question(r), ...shown.map(name => value(r, name))].map(v => el("td", "", v.slice(0, 200)));
  const e = el("tr", r === open ? "open" : "", head, el("td", r.valid ? "good" : "error", r.valid ? "valid " : "invalid ", el("span", "muted", r.codes.join(", "))), ...cells);
  e.onclick = () => { location.hash = link.hash };
  return e;
}
function detail(r) {
  const left = new Set(r.issues.map(i => data.issues[i])), under = (path, own) => [...left].filter(i => (own && i[2] === path) || i[3] === path || /^[.[]/.test(i[3].startsWith(path) ? i[3].slice(path.length) : "")).map(i => { left.delete(i); return issue(i) });
  const turns = (r.turns ?? []).map(([path, role, said]) => el("div", "turn " + (path === "response" ? "answer" : ""), el("b", "", role), el("p", "cell", said), ...under(path)));
  const cells = (r.cells ?? []).flatMap(([k, v]) => [el("dt", "", k), el("dd", "", el("span", "cell", v), ...under(k, true))]);
  const fixes = (r.fixes ?? []).map(([path, was, is]) => el("p", "", el("span", "path", path), " ", el("del", "", was), " ", el("ins", "", is)));
  const at = rows.indexOf(r), step = (way, name) => Object.assign(el("button", "", name), {disabled: !rows[at + way], onclick: () => go(at + way)});
  const about = [r.line ? "line " + r.line : "", r.id ?? "", at < 0 ? "" : `${count(at + 1)} of ${count(rows.length)}`].filter(s => s).join(" · ");
  one("#row").replaceChildren(el("p", "tools", el("b", "", `Row ${r.row}`), el("span", r.valid ? "good" : "error", r.valid ? "valid" : "invalid"), el("span", "muted", about), step(-1, "Previous (K)"), step(1, "Next (J)")),
    ...[...left].map(issue), ...turns, ...(fixes.length ? [el("p", "", el("b", "", "Fix, before and after")), ...fixes] : []), ...(r.spans ?? []).map(span),
    cells.length ? el("dl", "", ...cells) : turns.length ? "" : el("p", "muted", "The page has no cells of this row."));
}
function issue([code, severity, , path, message, hint]) {
  return el("p", "found", Object.assign(el(one("#" + code) ? "a" : "b", severity, code), {href: "#" + code}), " ", el("span", "path", path), " " + message, el("span", "muted", hint && " → " + hint));
}
function go(at) { if (rows[at]) location.replace("#row-" + rows[at].row) }
function span([name, type, status, start, width, depth, time, inputs, outputs, error]) {
  const label = el("span", status, name, el("span", "muted", ` ${type} ${status} ${time}`)), bar = el("span", status);
  label.style.paddingLeft = depth + "em";
  bar.style.marginLeft = Math.min(start, 99) + "%";
  bar.style.width = width + "%";
  const cell = (k, v) => [el("p", "muted", k), el("pre", "cell", v)];
  return el("details", "span", el("summary", "", label, el("span", "meter", bar)), ...(error ? cell("error", error) : []), ...cell("inputs", inputs), ...cell("outputs", outputs));
}
function pick(test, text) { [picked, title] = [test, text]; find(""); one("#rows").scrollIntoView() }
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
const button = (e, onclick) => e.append(Object.assign(el("button", "link", ...e.childNodes), {onclick}));
for (const t of all(".rows")) [...t.tHead.rows[0].cells].forEach((h, i, heads) => button(h, () => {
  const up = h.ariaSort === "ascending" ? -1 : 1, v = ({rows: [r]}) => r.cells[i].dataset.n ?? r.cells[i].textContent;
  const n = b => parseFloat(v(b).replaceAll(",", ""));
  for (const o of heads) o.ariaSort = o !== h ? null : up > 0 ? "ascending" : "descending";
  t.append(...[...t.tBodies].sort((a, b) => up * (n(a) - n(b) || v(a).localeCompare(v(b)))));
}));
if (list) {
  for (const e of all("[data-metric]")) {
    const has = r => data.sets[r.metrics].includes(+e.dataset.metric), all = data.rows.length < data.total ? `, of ${e.dataset.rows} in the dataset` : "";
    button(e, () => pick(has, ` that support ${e.textContent}${all}`));
  }
  for (const e of all("[data-row]")) if (data.rows.some(r => r.row === +e.dataset.row)) button(e, () => { location.hash = "row-" + e.dataset.row });
  one("#all").onclick = () => pick(null, "");
  list.onscroll = scroll;
  for (const name of new Set(data.rows.flatMap(r => [...(r.turns ?? []).map(t => t[0].split(/[.[]/)[0]), ...(r.cells ?? []).map(c => c[0])]))) {
    const box = Object.assign(el("input", ""), {type: "checkbox", onchange: () => { shown = box.checked ? [...shown, name] : shown.filter(n => n !== name); drawRows() }});
    one("#columns").append(el("label", "", box, " " + name));
  }
}
const addressed = () => list ? data.rows.find(r => "#row-" + r.row === location.hash) ?? null : null;
onkeydown = e => {
  const way = {j: 1, k: -1}[e.key];
  if (!way || e.ctrlKey || e.metaKey || e.altKey || /INPUT|SELECT/.test(e.target.tagName)) return;
  const row = addressed();  // a key may come before hashchange does
  if (row) go(rows.indexOf(row) + way); else if (rows[0]) location.hash = "row-" + rows[0].row;
  else {
    const heads = all(".rows .told > td > details > summary").filter(s => s.offsetParent);
    const at = heads.findIndex(s => s.closest("tbody").contains(document.activeElement)), next = heads[at < 0 ? 0 : at + way];
    if (!next) return;
    if (at >= 0) heads[at].parentElement.open = false;
    next.parentElement.open = true;
    next.focus();
  }
};
for (const b of all(".copy")) b.onclick = async () => {
  try { await navigator.clipboard.writeText(b.previousElementSibling.textContent); b.textContent = "Copied" }
  catch { getSelection().selectAllChildren(b.previousElementSibling) }
};
onhashchange = () => {
  const d = items.find(d => "#" + d.id === location.hash), was = open;
  if (d) d.open = true;
  if (!list) return;
  open = addressed();
  if (open && !rows.includes(open)) { [picked, title] = [null, ""]; find("") }
  one("#row").hidden = !open;
  if (open) {
    detail(open);
    const height = list.firstChild.tBodies[0].rows[1].offsetHeight, top = rows.indexOf(open) * height;
    if (top < list.scrollTop || top > list.scrollTop + list.clientHeight - 3 * height) list.scrollTop = Math.max(0, top - 3 * height);
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
