"""A workbook with other cells in one of its sheets, or with comments on them: all else is copied byte for byte.

    xl/worksheets/sheet2.xml    the elements of these cells are replaced, or inserted in their rows
    xl/comments1.xml            gets the new comments, behind those of a person; without one it is a new part
    all other parts             as they were: other sheets, styles, charts, computed values of formulas

A cell with a formula, and one that is merged with cells of other rows, is not replaced: an error names it. A row that
is dropped leaves an empty line, so that nothing moves.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from xml.parsers.expat import ExpatError, ParserCreate
from xml.sax.saxutils import escape, quoteattr
from zipfile import ZipFile, ZipInfo

from msgspec import Struct

from agent_eval_schema.io.atomic import replacing, require_unchanged
from agent_eval_schema.io.excel_writer import AUTHOR, checked, comment_text, is_exact
from agent_eval_schema.io.jsonl import REMOVED
from agent_eval_schema.io.source import SheetPlace
from agent_eval_schema.io.streams import DROPPED, Edits
from agent_eval_schema.text import jsontext


def edit_workbook(sheet: SheetPlace, target: str, renames: Mapping[str, str | None], edits: Edits) -> None:
    """Write the workbook with other cells in its rows, and other names of columns; the two may be the same file. A
    column that becomes None is emptied. Raises EvalSetError for a cell that cannot be replaced, and if the file has
    changed since it was read."""
    with _copied(sheet, target) as (parts, changed):
        grid = _Cells(sheet, parts.read(sheet.part))
        names = [(renames.get(title, title), place) for title, place in sheet.columns.items()]
        places = {name: place for name, place in names if name is not None}
        emptied = {place for name, place in names if name is None}
        if len(places) + len(emptied) < len(sheet.columns):
            raise sheet.refused("the header", "two columns that become one")
        heads = {sheet.columns[title]: new for title, new in renames.items() if title in sheet.columns}
        cells: dict[int, dict[int, Any]] = {sheet.header: heads} if heads else {}
        for row, (line, values) in enumerate(zip(sheet.lines, edits, strict=True)):
            if gone := set(grid.of_line(line)) if values is DROPPED else emptied.intersection(grid.of_line(line)):
                cells[line] = dict.fromkeys(gone)
            for name, value in values.items():
                if name not in places:
                    places[name] = grid.widest = grid.widest + 1
                    cells.setdefault(sheet.header, {})[places[name]] = name
                cell = None if value is REMOVED else value
                cell = cell if isinstance(cell, str | None) or is_exact(cell) else jsontext.write_exactly(cell)
                cells.setdefault(line, {})[places[name]] = checked(cell, f"row {row}", name)
        changed[sheet.part] = grid.replaced(cells)


def comment_workbook(sheet: SheetPlace, target: str, notes: Iterable[tuple[int, list[dict[str, Any]]]]) -> None:
    """Write the workbook with the notes of rows as comments of their cells, behind the comments that these have."""
    texts: dict[tuple[int, int], list[str]] = {}
    for row, row_notes in notes:
        for note in row_notes:
            place = sheet.columns.get(note["column"] or "", min(sheet.columns.values(), default=1))
            texts.setdefault((sheet.lines[row], place), []).append(comment_text(note))
    with _copied(sheet, target) as (parts, changed):
        _comment(sheet, parts, changed, {cell: "\n".join(lines) for cell, lines in texts.items()})


@contextmanager
def _copied(sheet: SheetPlace, target: str) -> Iterator[tuple[ZipFile, dict[str, bytes]]]:
    """The parts of the file, and those that the block changes or adds; all are written when it succeeds."""
    require_unchanged(sheet.path, sheet.state)
    changed: dict[str, bytes] = {}
    with replacing(target, sheet.state) as temporary, ZipFile(sheet.path) as parts:
        yield parts, changed
        with ZipFile(temporary, "w") as copy:
            for info in parts.infolist():
                entry = ZipInfo(info.filename, info.date_time)
                entry.compress_type, entry.external_attr = info.compress_type, info.external_attr
                copy.writestr(entry, changed.pop(info.filename) if info.filename in changed else parts.read(info))
            for name, content in changed.items():
                copy.writestr(name, content, parts.getinfo(sheet.part).compress_type)


# --- cells
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


class _Cell(Struct):
    """Where an element is in the bytes of its part, and what must be known of it to replace it."""

    start: int
    end: int
    style: str | None
    is_filled: bool = False
    has_formula: bool = False


class _Cells:
    """The cells of a sheet by line and column, as bytes of its part."""

    def __init__(self, sheet: SheetPlace, xml: bytes) -> None:
        self._sheet, self._xml = sheet, xml
        self._lines: dict[int, dict[int, _Cell]] = {}
        self._names, self._is_table = "", False
        self._line = self._place = self.widest = 0
        _parse(sheet, sheet.part, xml, self)

    def of_line(self, line: int) -> list[int]:
        """The columns of the cells that are not empty."""
        return [place for place, cell in self._lines[line].items() if cell.is_filled]

    def start(self, name: str, attributes: dict[str, str], at: int) -> None:
        prefix, _, local = name.rpartition(":")
        if local == "row":
            self._line, self._place = int(attributes.get("r", self._line + 1)), 0
            self._lines.setdefault(self._line, {})
        elif local == "c":
            self._names = f' xmlns="{_MAIN}"' if prefix else ""
            found = re.fullmatch(r"\$?([A-Za-z]+)\$?([0-9]+)", attributes.get("r", ""))
            self._place, line = (_number(found[1]), int(found[2])) if found else (self._place + 1, self._line)
            self.widest = max(self.widest, self._place)
            self._cell = self._lines.setdefault(line, {})[self._place] = _Cell(at, at, attributes.get("s"))
        elif local in ("f", "v", "is"):
            self._cell.is_filled = True
            self._cell.has_formula |= local == "f"
        elif local == "tablePart":
            self._is_table = True

    def end(self, name: str, tag: range) -> None:
        if name.rpartition(":")[2] == "c":
            self._cell.end = tag.stop

    def replaced(self, cells: Mapping[int, Mapping[int, Any]]) -> bytes:
        """The part with other values in cells, None for an empty one."""
        pieces: list[tuple[int, int, bytes]] = []
        for line, values in cells.items():
            own = self._lines[line]
            for place in sorted(values):
                where = f"{_letters(place)}{line}"
                self._require_free(line, place, where)
                before = [other for other in own if other < place]
                at = own[max(before)].end if before else min(cell.start for cell in own.values())
                cell = own.get(place) or _Cell(at, at, None)
                pieces.append((cell.start, cell.end, self._element(where, cell.style, values[place])))
        return _spliced(self._xml, pieces)

    def _require_free(self, line: int, place: int, where: str) -> None:
        cell = self._lines[line].get(place)
        if cell is not None and cell.has_formula:
            raise self._sheet.refused(where, "a formula")
        if cell is not None and self._is_table and line == self._sheet.header:
            raise self._sheet.refused(where, "the header of a table")
        for left, top, right, bottom in self._sheet.merged:
            if left <= place <= right and top <= line <= bottom and (bottom > top or place > left):
                raise self._sheet.refused(where, "merged cells")

    def _element(self, where: str, style: str | None, value: Any) -> bytes:
        own, kind, inner = "" if style is None else f" s={quoteattr(style)}", "", ""
        if isinstance(value, str):
            kind, inner = ' t="inlineStr"', f'<is><t xml:space="preserve">{escape(value)}</t></is>'
        elif value is not None:
            kind, inner = ' t="b"' if isinstance(value, bool) else "", f"<v>{jsontext.write_exactly(+value)}</v>"
        return f'<c{self._names} r="{where}"{own}{kind}>{inner}</c>'.encode()


def _spliced(xml: bytes, pieces: Iterable[tuple[int, int, bytes]]) -> bytes:
    """The bytes with others from one place to another; of several insertions at a place in their order."""
    done, parts = 0, list[bytes]()
    for start, end, piece in sorted(pieces, key=lambda piece: piece[:2]):
        parts += [xml[done:start], piece]
        done = end
    return b"".join([*parts, xml[done:]])


def _parse(sheet: SheetPlace, part: str, xml: bytes, seen: _Cells | _Tags) -> None:
    """Call `start` with each element and where it begins in the bytes of a part, and `end` with its name and where its
    closing tag is."""
    parser = ParserCreate()

    def ended(name: str) -> None:  # of an empty element the place is already behind its tag
        at = parser.CurrentByteIndex
        seen.end(name, range(at, xml.index(b">", at) + 1 if xml.startswith(f"</{name}".encode(), at) else at))

    def refuse(*_: object) -> None:
        raise sheet.refused(part, "a document type")

    def require_utf8(_: str, encoding: str | None, __: int) -> None:
        if (encoding or "utf-8").lower() not in ("utf-8", "us-ascii"):
            raise sheet.refused(part, f"XML in {encoding}")

    parser.StartElementHandler = lambda name, attributes: seen.start(name, attributes, parser.CurrentByteIndex)
    parser.EndElementHandler = ended
    parser.StartDoctypeDeclHandler, parser.XmlDeclHandler = refuse, require_utf8
    try:
        parser.Parse(xml, True)
    except ExpatError as error:
        raise sheet.refused(part, f"XML that cannot be read ({error})") from error


def _letters(place: int) -> str:
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(place))


def _number(letters: str) -> int:
    from openpyxl.utils import column_index_from_string

    return int(column_index_from_string(letters))


# --- comments: their texts are in one part, the boxes that show them in another
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_BEHIND = ("legacyDrawingHF", "drawingHF", "picture", "webPublishItems", "tableParts", "extLst")
"""The elements of a sheet before which the one is that names its boxes."""

_VML = (
    'xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office" '
    'xmlns:x="urn:schemas-microsoft-com:office:excel"'
)


class _Tags:
    """Where some of the elements of a part begin and end, by their names."""

    def __init__(self, sheet: SheetPlace, part: str, xml: bytes) -> None:
        self.nodes: dict[str, list[tuple[dict[str, str], int]]] = {}
        self.closing: dict[str, int] = {}
        self.texts: dict[str, int] = {}
        """By cell, where the text of its comment ends."""
        self._sheet, self._part, self._xml, self._cell, self._depth = sheet, part, xml, "", 0
        _parse(sheet, part, xml, self)

    def end_of(self, local: str) -> int:
        """Where the closing tag of an element begins, which an empty element does not have."""
        at = self.closing.get(local, len(self._xml))
        if not self._xml.startswith(b"</", at):
            raise self._sheet.refused(self._part, f"no element {local}, or an empty one")
        return at

    def start(self, name: str, attributes: dict[str, str], at: int) -> None:
        local = name.rpartition(":")[2]
        self._depth += 1
        if self._depth <= 3 and local not in ("row", "c"):
            self.nodes.setdefault(local, []).append((attributes, at))
        self._cell = attributes.get("ref", "") if local == "comment" else self._cell

    def end(self, name: str, tag: range) -> None:
        self._depth -= 1
        local = name.rpartition(":")[2]
        self.closing[local] = tag.start
        if local == "text":
            self.texts[self._cell] = tag.start


def _comment(
    sheet: SheetPlace, parts: ZipFile, changed: dict[str, bytes], texts: Mapping[tuple[int, int], str]
) -> None:
    """Change the parts of the file so that cells, by line and column, have these comments."""
    folder, name = posixpath.split(sheet.part)
    relations, stem = f"{folder}/_rels/{name}.rels", name.removesuffix(".xml")
    while f"xl/comments_{stem}.xml" in parts.namelist() or f"xl/comments_{stem}.vml" in parts.namelist():
        stem += "_"
    xml = parts.read(sheet.part)
    tags = _Tags(sheet, sheet.part, xml)
    links = parts.read(relations) if relations in parts.namelist() else b""
    known = [one for one, _ in _Tags(sheet, relations, links).nodes.get("Relationship", ())] if links else []
    targets = {one.get("Id", ""): posixpath.normpath(posixpath.join("/", folder, one["Target"]))[1:] for one in known}
    kinds = {one.get("Id", ""): one["Type"].rpartition("/")[2] for one in known}
    notes = next((targets[id] for id, kind in kinds.items() if kind == "comments"), "")
    drawing = tags.nodes.get("legacyDrawing")
    boxes = targets.get(next((v for k, v in drawing[0][0].items() if k.endswith("id")), ""), "") if drawing else ""
    added: dict[str, str] = {}
    if not notes:
        notes = added["comments"] = f"xl/comments_{stem}.xml"
        changed[notes] = f'<comments xmlns="{_MAIN}"><authors></authors><commentList></commentList></comments>'.encode()
    if not boxes:
        boxes = added["vmlDrawing"] = f"xl/comments_{stem}.vml"
        changed[boxes] = f"<xml {_VML}>{_SHAPE_TYPE}</xml>".encode()
        before = min((at for local in _BEHIND for _, at in tags.nodes.get(local, ())), default=tags.end_of("worksheet"))
        link = f'<legacyDrawing xmlns="{_MAIN}" xmlns:r="{_RELATIONS}" r:id="{_id("vmlDrawing", kinds)}"/>'
        changed[sheet.part] = _spliced(xml, [(before, before, link.encode())])
    if added:
        relationships, overrides = "", ""
        for kind, part in added.items():
            place = f'Id="{_id(kind, kinds)}" Type="{_RELATIONS}/{kind}" Target="/{part}"'
            relationships += f'<Relationship xmlns="{_PACKAGE}/relationships" {place}/>'
            description = f'PartName="/{part}" ContentType="{_CONTENT[kind]}"'
            overrides += f'<Override xmlns="{_PACKAGE}/content-types" {description}/>'
        empty = f'<Relationships xmlns="{_PACKAGE}/relationships"></Relationships>'.encode()
        changed[relations] = _appended(links if known else empty, relationships)
        changed[_TYPES] = _appended(parts.read(_TYPES), overrides)
    for part in (notes, boxes):
        if part not in changed and part not in parts.namelist():
            raise sheet.refused(part, "no such part")
    is_threaded = "threadedComment" in kinds.values()
    content = changed.get(notes) or parts.read(notes)
    changed[notes], fresh = _with_texts(sheet, notes, content, texts, is_threaded)
    changed[boxes] = _with_boxes(changed.get(boxes) or parts.read(boxes), fresh)


_TYPES = "[Content_Types].xml"
_DOCUMENT = "application/vnd.openxmlformats-officedocument"
_CONTENT = {"comments": f"{_DOCUMENT}.spreadsheetml.comments+xml", "vmlDrawing": f"{_DOCUMENT}.vmlDrawing"}
_SHAPE_TYPE = (
    '<v:shapetype id="_x0000_t202" coordsize="21600,21600" o:spt="202" path="m,l,21600r21600,l21600,xe">'
    '<v:stroke joinstyle="miter"/><v:path gradientshapeok="t" o:connecttype="rect"/></v:shapetype>'
)


def _id(kind: str, known: Mapping[str, str]) -> str:
    """An ID of a relation that the sheet does not have."""
    return next(name for name in (f"{kind}{number}" for number in range(len(known) + 1)) if name not in known)


def _appended(xml: bytes, elements: str) -> bytes:
    """A part with more elements at the end of its root."""
    at = xml.rindex(b"</")
    return _spliced(xml, [(at, at, elements.encode())])


def _with_texts(
    sheet: SheetPlace, part: str, xml: bytes, texts: Mapping[tuple[int, int], str], is_threaded: bool
) -> tuple[bytes, list[tuple[int, int]]]:
    """A part of comments with more of them, and the cells that had none."""
    tags = _Tags(sheet, part, xml)
    author = len(tags.nodes.get("author", ()))
    pieces, fresh = [(tags.end_of("authors"), f'<author xmlns="{_MAIN}">{AUTHOR}</author>')], list[tuple[int, int]]()
    for (line, place), text in sorted(texts.items()):
        cell = f"{_letters(place)}{line}"
        if cell not in tags.texts:
            fresh.append((line, place))
            inner = f'<text><t xml:space="preserve">{escape(text)}</t></text>'
            comment = f'<comment xmlns="{_MAIN}" ref="{cell}" authorId="{author}" shapeId="0">{inner}</comment>'
            pieces.append((tags.end_of("commentList"), comment))
        elif is_threaded:
            raise sheet.refused(cell, "a thread of comments")
        else:
            run = f'<r xmlns="{_MAIN}"><t xml:space="preserve">\n\n{escape(text)}</t></r>'
            pieces.append((tags.texts[cell], run))
    return _spliced(xml, [(at, at, piece.encode("utf-8", "replace")) for at, piece in pieces]), fresh


def _with_boxes(xml: bytes, cells: Iterable[tuple[int, int]]) -> bytes:
    """A part of boxes with one for each cell, hidden until the cell is pointed at."""
    number = max((int(digits) for digits in re.findall(rb"_x0000_s(\d{1,9})", xml)), default=1024)
    boxes = [
        f'<v:shape {_VML} id="_x0000_s{number + n}" type="#_x0000_t202" fillcolor="#ffffe1" o:insetmode="auto" '
        'style="position:absolute;width:360pt;height:90pt;visibility:hidden"><v:fill color2="#ffffe1"/>'
        '<v:shadow color="black" obscured="t"/><v:path o:connecttype="none"/><v:textbox/>'
        '<x:ClientData ObjectType="Note"><x:MoveWithCells/><x:SizeWithCells/><x:AutoFill>False</x:AutoFill>'
        f"<x:Row>{line - 1}</x:Row><x:Column>{place - 1}</x:Column></x:ClientData></v:shape>"
        for n, (line, place) in enumerate(cells, 1)
    ]
    return _appended(xml, "".join(boxes))
