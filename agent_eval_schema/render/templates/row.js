"use strict";
// A row of the data, the same in a report, a result and a review. Text of the data becomes text nodes and values of
// fields only: `el` makes every element.
function el(tag, props = {}, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(props)) {
    if (v === undefined || v === null || v === false) continue;
    if (k.startsWith("on")) e[k] = v;
    else if (k === "class") e.className = v;
    else if (k === "value") e.value = v;
    else e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...children.flat(9).filter(c => c !== null && c !== undefined && c !== false).map(c => c instanceof Node ? c : visible(c)));
  return e;
}
// what reorders a line, or has no width, is shown by its number
const UNSAFE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff]/g;
const visible = t => String(t).replace(UNSAFE, c => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));
const breakable = name => String(name).split(/(?<=[_/])/).flatMap((part, i) => i ? [el("wbr"), part] : part);
const text = (t, cls = "text") => el("p", {class: cls}, t);

// Markdown comes as a tree of elements; what is no element of the list is text.
const markdown = {raw: false, trees: new Map()};
const TAGS = new Set("p h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong s table thead tbody tr th td hr br".split(" "));
const nodes = (tree, common) => tree.map(part => typeof part === "string" ? marked(part, common) : TAGS.has(part[0]) ? el(part[0][0] === "h" && part[0] !== "hr" ? "p" : part[0], {class: /^h\d$/.test(part[0]) ? "heading" : null}, nodes(part[1], common)) : nodes(part[1], common));
function rich(t, common) {
  const tree = !markdown.raw && markdown.trees.get(t);
  return tree ? el("div", {class: "text rich"}, nodes(tree, common)) : text(marked(t, common));
}
const WORD = /([\p{L}\p{N}]+)/u, wordsIn = t => new Set(t.toLocaleLowerCase("en").match(/[\p{L}\p{N}]+/gu) ?? []);
function marked(t, common) {  // the words that the others do not have
  return !common ? t : t.split(WORD).map((part, i) => i % 2 && !common.has(part.toLocaleLowerCase("en")) ? el("mark", {class: "pick"}, part) : part);
}

const turnOf = (role, said, {kind = "", calls = [], common, more = []} = {}) => el("div", {class: "turn " + kind}, el("b", {}, role), said && rich(said, common), calls.length > 0 && callsOf(calls.map(([tool, input]) => ({predicted: {tool, input, mark: ""}}))), more);
const documentOf = (uri, content, before, after) => el("div", {class: "box doc"}, before, el("div", {}, el("div", {class: "uri"}, uri), content && rich(content)), after);
// expected and actual beside each other; a word is marked if no text of the other side has it
function besideOf(expected, answers, under = () => []) {
  const sides = [expected, ...answers.map(a => [a])].filter(side => side.length);
  const sets = sides.map(side => wordsIn(side.map(([, t]) => t).join(" "))), facts = expected.length && !/response|reference/.test(expected[0][0]);
  const common = i => sides.length < 2 || (facts && i && sides.length === 2) ? undefined : new Set(sets.flatMap((s, j) => j === i ? [] : [...s]));
  return el("div", {class: "side"}, sides.map((side, i) => el("div", {}, side.map(([path, t]) => turnOf(path, t, {kind: side === expected ? "expected" : "answer", common: common(i), more: under(path)})))));
}
const MARKS = {matched: ["=", "matched", ""], moved: ["↕", "in another place", "info"], extra: ["+", "extra", "warning"], missing: ["−", "missing", "error"]};
function callsOf(pairs) {
  const call = c => { const [sign, name, mood] = MARKS[c.mark] ?? ["", "", ""]; return el("span", {class: "call " + mood}, sign && el("span", {class: "sign", role: "img", "aria-label": name}, sign), el("span", {}, el("b", {}, breakable(c.tool)), " ", el("span", {class: "cell"}, c.input))) };
  const sides = ["predicted", "reference"].filter(side => pairs.some(p => p[side]) || pairs.some(p => (p.predicted ?? p.reference).mark));
  return el("table", {class: "calls"}, sides.length > 1 && el("thead", {}, el("tr", {}, sides.map(side => el("th", {scope: "col"}, side === "predicted" ? "Calls" : "Expected calls")))),
    el("tbody", {}, pairs.map(p => el("tr", {}, sides.map(side => el("td", {}, p[side] && call(p[side])))))));
}
function spanOf([name, type, status, start, width, depth, time, inputs, outputs, error]) {
  const label = el("span", {class: status}, name, el("span", {class: "muted"}, ` ${type} ${status} ${time}`)), bar = el("span", {class: status});
  label.style.paddingLeft = depth + "em";
  bar.style.marginLeft = Math.min(start, 99) + "%";
  bar.style.width = width + "%";
  const cell = (k, v) => v && [el("p", {class: "muted"}, k), el("pre", {class: "cell"}, v)];
  return el("details", {class: "span", open: !!error}, el("summary", {}, label, el("span", {class: "meter"}, bar)), error && el("p", {class: "error text"}, error), cell("inputs", inputs), cell("outputs", outputs));
}
