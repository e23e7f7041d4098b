"""XMP packets edited in place: every byte not involved in a change stays as it was.

XMP is RDF in XML: properties of a photograph are in `rdf:Description` elements, each as an attribute or as an element
of its own, and readers accept either.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from c5.errors import ReadError

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
C5 = "https://c5-awb.github.io/c5/xmp/1.0/"
"""The namespace of our marks."""

MAX_DEPTH, MAX_ELEMENTS, MAX_PREFIXES = 200, 10_000, 100
"""Nesting depth, elements in total, and namespaces in scope; hostile files have them by the million."""

EMPTY = f"""\
<?xml version="1.0" encoding="UTF-8"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/">
 <rdf:RDF xmlns:rdf="{RDF}">
  <rdf:Description rdf:about=""/>
 </rdf:RDF>
</x:xmpmeta>
""".encode()

REMEDY = "save it again in the program that wrote it, or remove it"

# What a start tag looks like once the parser has found it well-formed.
_TAG_NAME = re.compile(rb"<([^\s/>]+)")
_ATTRIBUTE = re.compile(rb"\s+([^\s=/<>]+)\s*=\s*(?:\"[^\"]*\"|'[^']*')")
_TAG_END = re.compile(rb"\s*/?>")


class Name(NamedTuple):
    """The name of a property, never by its prefix, which every file is free to choose."""

    namespace: str
    local: str


DESCRIPTION = Name(RDF, "Description")


class Attribute(NamedTuple):
    value: str
    qualified: str
    start: int
    """Where the white space before it begins."""
    end: int


@dataclass(eq=False, slots=True)
class Element:
    """An element and the bytes it occupies."""

    name: Name
    qualified: str
    start: int
    attributes: dict[Name, Attribute]
    prefixes: dict[str, str]
    """Prefix to namespace, as in scope inside it."""
    attributes_end: int
    opened: int
    """Where its start tag ends."""
    closing: int = 0
    """Where its end tag begins; where it ends itself if it has none."""
    end: int = 0
    children: list[Element] = field(default_factory=list)
    text: str = ""

    @property
    def is_empty_tag(self) -> bool:
        return self.closing == self.end

    def find(self, name: Name) -> list[Element]:
        return [child for child in self.children if child.name == name]


class Packet:
    """An XMP packet and the changes to make; `encode` makes them."""

    def __init__(self, data: bytes | None) -> None:
        self.data = EMPTY if data is None else data
        rdf = _find_rdf(self.data)
        if not rdf.find(DESCRIPTION):
            prefix = _prefix(rdf, RDF)
            self.data = _apply(self.data, [append(rdf, f'<{prefix}:Description {prefix}:about=""/>')])
            rdf = _find_rdf(self.data)
        self.descriptions = rdf.find(DESCRIPTION)
        self._edits: list[tuple[int, int, str]] = []
        self._declared: dict[tuple[int, str], str] = {}

    def get(self, name: Name) -> str | None:
        """The text of a simple property."""
        for description in self.descriptions:
            if name in description.attributes:
                return description.attributes[name].value
            for child in description.find(name):
                return child.text.strip()
        return None

    def uses(self, namespace: str) -> bool:
        return any(_uses(description, namespace) for description in self.descriptions)

    def set(self, name: Name, value: str, prefix: str) -> None:
        """Give a simple property a value: where it is, or as a new attribute beside similar ones.

        `prefix` is for packets that have none for the namespace.
        """
        is_set = False
        for description in self.descriptions:
            is_set = self.put(description, name, "" if is_set else value) or is_set
        if not is_set:
            home = self.home(name.namespace)
            qualified = f"{self.prefix(home, name.namespace, prefix)}:{name.local}"
            self._edits.append((home.attributes_end, home.attributes_end, f"\n   {qualified}={quoteattr(value)}"))

    def put(self, element: Element, name: Name, value: str) -> bool:
        """Give a property of an element a value where it is, removing repeats. Returns whether it was there."""
        attribute, is_set = element.attributes.get(name), not value
        if attribute and not is_set:
            start = self.data.index(attribute.qualified.encode(), attribute.start)
            self._edits.append((start, attribute.end, f"{attribute.qualified}={quoteattr(value)}"))
            is_set = True
        elif attribute:
            self._edits.append((attribute.start, attribute.end, ""))
        for child in element.find(name):
            tag = f"<{child.qualified}>{escape(value)}</{child.qualified}>"
            self._edits.append((child.start, child.end, "" if is_set else tag))
            is_set = True
        return is_set and bool(value)

    def remove(self, name: Name) -> None:
        for description in self.descriptions:
            if name in description.attributes:
                self._edits.append((description.attributes[name].start, description.attributes[name].end, ""))
            for child in description.find(name):
                self.cut(child)

    def cut(self, element: Element) -> None:
        """Remove an element and the white space before it."""
        start = len(self.data[: element.start].rstrip())
        self._edits.append((start, element.end, ""))

    def append(self, element: Element, text: str) -> None:
        """Put XML at the end of an element's content."""
        self._edits.append(append(element, text))

    def home(self, namespace: str) -> Element:
        """The description that holds properties of a namespace, or the best place for them."""
        users = (description for description in self.descriptions if _uses(description, namespace))
        return next(users, self.descriptions[0])

    def prefix(self, element: Element, namespace: str, wanted: str) -> str:
        """The prefix of a namespace in an element's start tag, which declares it if necessary."""
        known = _prefix(element, namespace) or self._declared.get((element.start, namespace))
        if known:
            return known
        while wanted in element.prefixes:
            wanted += "_"
        self._declared[element.start, namespace] = wanted
        place = element.attributes_end
        self._edits.append((place, place, f'\n    xmlns:{wanted}="{namespace}"'))
        return wanted

    def encode(self) -> bytes:
        return _apply(self.data, self._edits)


def put_property(data: bytes, name: Name, text: str) -> bytes:
    """A packet with a simple property of ours."""
    packet = Packet(data)
    packet.set(name, text, "c5")
    return packet.encode()


def cut_property(data: bytes, name: Name) -> tuple[bytes, str | None]:
    """A packet without a simple property, and without its namespace if unused otherwise; and the property's text."""
    packet = Packet(data)
    value = packet.get(name)
    if value is None:
        return data, None
    packet.remove(name)
    return cut_namespace(packet.encode(), name.namespace), value


def cut_namespace(data: bytes, namespace: str) -> bytes:
    """A packet in which no description declares a namespace that it does not use."""
    edits: list[tuple[int, int, str]] = []
    for description in Packet(data).descriptions:
        prefix = re.escape(_prefix(description, namespace).encode())
        declaration = rb"\s+xmlns:" + prefix + rb"\s*=\s*(?:\"[^\"]*\"|'[^']*')"
        found = re.compile(declaration).search(data, description.start, description.opened) if prefix else None
        if found and not re.search(rb"[\s</]" + prefix + rb":", data[description.start : description.end]):
            edits.append((found.start(), found.end(), ""))
    return _apply(data, edits)


@lru_cache(maxsize=4)  # a sidecar is looked at several times before and after it changes
def parse(data: bytes) -> Element:
    """The root element of an XML document in UTF-8; one that declares entities is refused."""
    try:
        data.decode()
    except UnicodeDecodeError:
        raise ReadError(f"the sidecar is damaged or not UTF-8 text: {REMEDY}") from None
    parser = expat.ParserCreate("utf-8")
    parser.ordered_attributes = True
    parser.buffer_text = True
    roots: list[Element] = []
    open_elements: list[Element] = []
    count = 0

    def refuse(*_: object) -> None:
        raise ReadError(f"the sidecar declares a document type or entities, which no XMP does: {REMEDY}")

    def declare(_: str, encoding: str | None, __: int) -> None:
        if encoding and encoding.lower() not in ("utf-8", "us-ascii"):
            raise ReadError(f"the sidecar is not UTF-8 text but {encoding}: {REMEDY}")

    def start(qualified: str, listed: list[str]) -> None:
        nonlocal count
        count += 1
        if len(open_elements) >= MAX_DEPTH or count > MAX_ELEMENTS:
            raise ReadError(f"the sidecar is nested too deeply, or has too many elements: {REMEDY}")
        outside = open_elements[-1].prefixes if open_elements else {"xml": "http://www.w3.org/XML/1998/namespace"}
        element = _read_tag(data, parser.CurrentByteIndex, qualified, listed, outside)
        (open_elements[-1].children if open_elements else roots).append(element)
        open_elements.append(element)

    def end(_: str) -> None:
        element = open_elements.pop()
        if data.startswith(b"/>", element.opened - 2):
            element.closing = element.end = element.opened
        else:
            element.closing = parser.CurrentByteIndex
            element.end = data.index(b">", element.closing) + 1

    def characters(text: str) -> None:
        open_elements[-1].text += text

    parser.XmlDeclHandler = declare
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    try:
        parser.Parse(data, True)
        expat.ParserCreate("utf-8", " ").Parse(data, True)  # checks the use of prefixes too
    except expat.ExpatError as error:
        reason = f"line {error.lineno}: {expat.ErrorString(error.code)}"
        raise ReadError(f"the sidecar is damaged ({reason}): {REMEDY}") from None
    return roots[0]


def _find_rdf(data: bytes) -> Element:
    root = parse(data)
    for element in (root, *root.children):
        if element.name == Name(RDF, "RDF") and _prefix(element, RDF):
            return element
    raise ReadError(f"the sidecar holds no XMP: {REMEDY}")


def append(element: Element, text: str) -> tuple[int, int, str]:
    """The edit that puts XML at the end of an element's content."""
    if element.is_empty_tag:
        return element.attributes_end, element.end, f">{text}</{element.qualified}>"
    return element.closing, element.closing, text


def _read_tag(data: bytes, place: int, qualified: str, listed: list[str], outside: dict[str, str]) -> Element:
    """An element as its start tag describes it."""
    values = dict(zip(listed[::2], listed[1::2], strict=True))
    declared = {key[6:]: value for key, value in values.items() if key.startswith("xmlns:")}
    declared |= {"": values["xmlns"]} if "xmlns" in values else {}
    if len(outside) + len(declared) > MAX_PREFIXES:
        raise ReadError(f"the sidecar declares too many namespaces: {REMEDY}")
    prefixes = {**outside, **declared} if declared else outside
    name = _TAG_NAME.match(data, place)
    position = name.end() if name else place
    attributes = {}
    while match := _ATTRIBUTE.match(data, position):
        key = match[1].decode()
        if ":" in key and not key.startswith("xmlns:"):
            attributes[_resolve(key, prefixes)] = Attribute(values[key], key, match.start(), match.end())
        position = match.end()
    end = _TAG_END.match(data, position)
    if not (name and end):
        raise ReadError(f"the sidecar is damaged: {REMEDY}")
    return Element(_resolve(qualified, prefixes), qualified, place, attributes, prefixes, position, end.end())


def _resolve(qualified: str, prefixes: dict[str, str]) -> Name:
    prefix, _, local = qualified.rpartition(":")
    if prefix and prefix not in prefixes:
        raise ReadError(f"the sidecar is damaged (nothing says what {prefix}: stands for): {REMEDY}")
    return Name(prefixes.get(prefix, ""), local)


def _prefix(element: Element, namespace: str) -> str:
    return next((prefix for prefix, bound in element.prefixes.items() if bound == namespace and prefix), "")


def _uses(description: Element, namespace: str) -> bool:
    names = [*description.attributes, *(child.name for child in description.children)]
    return any(name.namespace == namespace for name in names)


def _apply(data: bytes, edits: list[tuple[int, int, str]]) -> bytes:
    """The bytes with each stretch replaced by its text; insertions at one place keep their order."""
    parts, done = [], 0
    for start, end, text in sorted(edits, key=lambda edit: edit[:2]):
        parts += [data[done:start], text.encode()]
        done = max(done, end)
    return b"".join([*parts, data[done:]])
