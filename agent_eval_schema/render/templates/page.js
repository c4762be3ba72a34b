{
const all = s => [...document.querySelectorAll(s)], one = s => document.querySelector(s);
const el = (tag, cls, ...parts) => { const e = document.createElement(tag); e.className = cls; e.append(...parts); return e };
const list = one("#rowlist"), data = list && JSON.parse(one("#data").textContent);
const items = all(".issues > details, .rows > tbody"), search = one("#search"), found = one("#found");
let filter = "", picked = null, title = "";
const hit = text => !search || text.toLowerCase().includes(search.value.toLowerCase());
const words = r => [r.row, r.id, ...r.codes, ...r.cells.flat()].join(" ");
function draw() {
  let shown = 0;
  for (const e of items) {
    const s = e.dataset;
    e.hidden = (filter === "fixable" ? !s.fixable : filter && s.severity !== filter) || !hit(e.textContent);
    shown += !e.hidden;
  }
  if (found) found.textContent = `${shown} of ${items.length} ${found.dataset.of}`;
  if (list) drawRows();
}
function drawRows() {
  const rows = data.rows.filter(r => (!picked || picked(r)) && hit(words(r))), has = data.rows.length;
  one("#rowcount").textContent = `${rows.length} of ${data.total} rows${title}${has < data.total ? ` (the page has ${has})` : ""}`;
  list.replaceChildren(...rows.slice(0, 100).map(row));
}
function row(r) {
  const about = ` ${r.line ? "line " + r.line : ""} ${r.id ?? ""}  ${r.codes.join(", ")}`;
  const d = el("details", "issue", el("summary", "", el("span", r.valid ? "tag good" : "tag error", "row " + r.row), el("span", "muted", about)));
  d.id = "row-" + r.row;
  d.ontoggle = () => {
    if (!d.open || d.children[1]) return;
    const cells = r.cells.flatMap(([k, v]) => [el("dt", "", k), el("dd", "cell", v)]);
    d.append(el("div", "", ...r.spans.map(span), cells[0] ? el("dl", "", ...cells) : el("p", "muted", "The page has no cells of this row.")));
  };
  return d;
}
function span([name, type, status, start, width, depth, time, inputs, outputs]) {
  const label = el("span", status, name, el("span", "muted", ` ${type} ${status} ${time}`)), bar = el("span", status);
  label.style.paddingLeft = depth + "em";
  bar.style.marginLeft = Math.min(start, 99) + "%";
  bar.style.width = width + "%";
  const cell = (k, v) => [el("p", "muted", k), el("pre", "cell", v)];
  return el("details", "span", el("summary", "", label, el("span", "meter", bar)), ...cell("inputs", inputs), ...cell("outputs", outputs));
}
function pick(test, text) { [picked, title, search.value] = [test, text, ""]; draw(); one("#rows").scrollIntoView() }
const filters = all("[data-filter]");
for (const b of filters) b.onclick = () => {
  filter = b.dataset.filter;
  for (const o of filters) o.ariaPressed = o === b;
  draw();
};
if (search) search.oninput = draw;
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
  for (const e of all("[data-metric]")) button(e, () => pick(r => r.metrics.includes(+e.dataset.metric), ", that support " + e.textContent));
  for (const e of all("[data-row]")) {
    const own = r => r.row === +e.dataset.row;
    if (data.rows.some(own)) button(e, () => { pick(own, ", row " + e.dataset.row); list.firstChild.open = true });
  }
  one("#all").onclick = () => pick(null, "");
}
for (const b of all(".copy")) b.onclick = async () => {
  try { await navigator.clipboard.writeText(b.previousElementSibling.textContent); b.textContent = "Copied" }
  catch { getSelection().selectAllChildren(b.previousElementSibling) }
};
onhashchange = () => { const d = items.find(d => "#" + d.id === location.hash); if (d) d.open = true };
for (const e of all("[data-script], .nojs")) e.hidden = !e.hidden;
draw();
onhashchange();
}
