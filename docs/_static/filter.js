// A field above each filterable table that hides the rows without its words.
for (const block of document.querySelectorAll(".filterable")) {
  const field = document.createElement("input");
  field.type = "search";
  field.className = "table-filter";
  field.placeholder = "Filter, e.g. trace error";
  field.setAttribute("aria-label", "Filter the rows of the tables");
  block.prepend(field);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of block.querySelectorAll("tbody tr")) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
}
