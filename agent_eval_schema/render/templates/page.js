(() => {
const all = (s, e = document) => [...e.querySelectorAll(s)], one = s => document.querySelector(s);
const el = (tag, cls, text) => { const e = document.createElement(tag); e.className = cls || ""; e.textContent = text ?? ""; return e };
const data = JSON.parse(one("#data").textContent), issues = all(".issues > details");
const list = one("#rowlist"), tools = one("#tools"), search = one("#search");
let filter = "", picked = null, title = "";
const hit = text => text.toLowerCase().includes(search.value.toLowerCase());
const words = r => [r.row, r.id, ...r.codes, ...r.cells.flat()].join(" ");
function draw() {
  let shown = 0;
  for (const e of issues) {
    const s = e.dataset;
    e.hidden = (filter === "fixable" ? !s.fixable : filter && s.severity !== filter) || !hit(e.textContent);
    shown += !e.hidden;
  }
  one("#found").textContent = shown + " of " + issues.length + " codes";
  if (list) drawRows();
}
function drawRows() {
  const rows = data.rows.filter(r => (!picked || picked(r)) && hit(words(r)));
  one("#rowcount").textContent = rows.length + " of " + data.total + " rows" + (title && ", " + title) + (data.rows.length < data.total ? " (the page has " + data.rows.length + ")" : "");
  list.replaceChildren(...rows.slice(0, 100).map(row));
}
function row(r) {
  const d = el("details", "issue"), s = el("summary");
  d.id = "row-" + r.row;
  s.append(el("span", "tag " + (r.valid ? "good" : "error"), "row " + r.row), el("span", "muted", (r.line ? " line " + r.line : "") + (r.id ? " " + r.id : "") + "  " + r.codes.join(", ")));
  d.append(s);
  d.addEventListener("toggle", () => {
    if (!d.open || d.children[1]) return;
    const body = el("div"), cells = el("dl");
    for (const [k, v] of r.cells) cells.append(el("dt", "", k), el("dd", "cell", v));
    body.append(...r.spans.map(span), cells);
    if (!r.cells.length) body.append(el("p", "muted", "The page does not have the cells of this row."));
    d.append(body);
  });
  return d;
}
function span([name, type, status, start, width, depth, time, inputs, outputs]) {
  const d = el("details", "span"), s = el("summary"), label = el("span", status === "error" ? "error" : "", name + " "), track = el("span", "meter"), bar = el("span", status);
  label.style.paddingLeft = depth + "em";
  label.append(el("span", "muted", type + " " + status + " " + time));
  bar.style.marginLeft = Math.min(start, 99) + "%";
  bar.style.width = Math.max(Math.min(width, 100 - start), 1) + "%";
  track.append(bar);
  s.append(label, track);
  d.append(s, el("p", "muted", "inputs"), el("pre", "cell", inputs), el("p", "muted", "outputs"), el("pre", "cell", outputs));
  return d;
}
function pick(test, text) { picked = test; title = text; search.value = ""; draw(); one("#rows").scrollIntoView() }
for (const b of all("[data-filter]")) b.onclick = () => {
  filter = b.dataset.filter;
  all("[data-filter]").forEach(o => o.setAttribute("aria-pressed", o === b));
  draw();
};
search.oninput = draw;
one("#sort").onchange = e => {
  const k = e.target.value, v = d => k == "rows" ? -d.dataset.rows : k === "code" ? d.id : issues.indexOf(d);
  one(".issues").append(...[...issues].sort((a, b) => v(a) < v(b) ? -1 : 1));
};
const button = (e, go) => {
  const b = el("button", "link", e.textContent);
  b.onclick = go;
  e.replaceChildren(b);
};
for (const e of list ? all("[data-metric]") : []) button(e, () => pick(r => r.metrics.includes(+e.dataset.metric), "that support " + e.textContent));
for (const e of list ? all("[data-row]") : []) if (data.rows.some(r => r.row === +e.dataset.row)) button(e, () => {
  pick(r => r.row === +e.dataset.row, "row " + e.dataset.row);
  list.firstChild.open = true;
});
const open = () => { const d = issues.find(d => "#" + d.id === location.hash); if (d) d.open = true };
addEventListener("hashchange", open);
all("[data-script], .nojs").forEach(e => { e.hidden = !e.hidden });
for (const b of all("#all")) b.onclick = () => pick(null, "");
draw();
open();
})();
