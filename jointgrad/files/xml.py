"""XML from strangers: a small tree of elements that knows file and line, read within fixed bounds.

No document types, no entities, nothing fetched. Every refusal is one sentence that begins with file and line.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

from ..model.budget import Budget, excess, present
from ..model.errors import ModelError

LONGEST_NAME = 1000  # characters of the name of an attribute


class FileError(ModelError):
    """A file that cannot be read as a robot; the message begins with file and line."""


class MissingFileError(FileError):
    """A file that another one refers to and that is in none of the folders we may look into."""


@dataclass
class Element:
    """One tag with its attributes, what is inside it, and where it stood."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element] = field(default_factory=list)
    text: str = ""
    line: int = 0
    file: str = ""

    def get(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)

    def all(self, tag: str) -> list[Element]:
        return [child for child in self.children if child.tag == tag]

    def first(self, tag: str) -> Element | None:
        return next((child for child in self.children if child.tag == tag), None)

    def walk(self) -> Iterator[Element]:
        """This element and everything below it, in the order of the file."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack += reversed(element.children)

    def error(self, message: str) -> FileError:
        """An error that says where this element stands; raise it."""
        return FileError(f"{self.file}:{self.line}: {message}")

    def require(self, name: str) -> str:
        """An attribute that must be there and must not be empty."""
        value = self.attributes.get(name, "")
        if not value.strip():
            raise self.error(f'<{self.tag}> needs the attribute "{name}"')
        return value

    def floats(
        self, name: str, count: int | Container[int] | None = None, default: Any = None, finite: bool = True
    ) -> Any:
        """An attribute as a tuple of numbers; `count` is how many there must be, or a container of allowed counts.

        Where the attribute is absent the answer is `default`, as it is. NaN is always refused, infinity unless finite=False.
        """
        if name not in self.attributes:
            return default
        words = self.attributes[name].split()
        try:
            values = tuple(_float(word) for word in words)
        except ValueError:
            bad = next(word for word in words if not _is_float(word))
            raise self._bad(name, f'"{_short(bad)}" is not a number') from None
        if count is not None and len(values) not in ((count,) if isinstance(count, int) else count):
            wanted = (
                f"{count} number" + "s" * (count != 1) if isinstance(count, int) else f"a count of numbers in {count}"
            )
            raise self._bad(name, f"expected {wanted}, got {len(values)}")
        for value in values:
            if math.isnan(value) or (finite and math.isinf(value)):
                raise self._bad(name, f"{value} is not a finite number")
            if finite and abs(value) > 1e100:  # its square must be a number, too
                raise self._bad(name, f"{value} is too large to compute with")
        return values

    def number(self, name: str, default: Any = None, finite: bool = True) -> Any:
        """An attribute as one number."""
        values = self.floats(name, 1, None, finite)
        return default if values is None else values[0]

    def flag(self, name: str, default: bool = False) -> bool:
        if name not in self.attributes:
            return default
        word = self.attributes[name].strip().lower()
        if word not in ("true", "false", "1", "0"):
            raise self._bad(name, 'expected "true" or "false"')
        return word in ("true", "1")

    def _bad(self, name: str, message: str) -> FileError:
        return self.error(f'<{self.tag} {name}="{_short(self.attributes[name])}">: {message}')


def parse(source: Any) -> Element:
    """The root element of a file: a path, an open file, or XML text (a string that begins with "<")."""
    name, data = _read(source)
    body = data.lstrip()
    lines_before = data[: len(data) - len(body)].count("\n" if isinstance(data, str) else b"\n")  # type: ignore[arg-type]
    builder = _Builder(name, lines_before)
    # blanks before the declaration and zero bytes after the end are not XML, but other readers of robot files take them
    if isinstance(body, str):
        body = body.rstrip("\0")
    elif not body.startswith((b"\xff\xfe", b"\xfe\xff")):  # in UTF-16 every other byte is zero
        body = body.rstrip(b"\0")
    return builder.build(body)


def folder_of(source: Any) -> Path | None:
    """The folder that a source lies in, against which its file references are resolved; None for text."""
    if isinstance(source, str) and not source.lstrip("\ufeff \t\r\n").startswith("<"):
        return Path(source).parent
    if isinstance(source, os.PathLike):
        return Path(source).parent
    name = getattr(source, "name", None)
    return Path(name).parent if isinstance(name, str) and os.path.exists(name) else None


Folders = str | os.PathLike | Sequence[str | os.PathLike]  # one folder, or several


def folders_of(given: Folders) -> list[Path]:
    """Folders as a list of paths; a text or a path alone is one folder, not a row of letters."""
    if isinstance(given, str | os.PathLike):
        given = [given]
    try:
        return [Path(folder) for folder in given]
    except TypeError:
        raise FileError(f"search_roots must be a folder or several folders, but is {given!r:.80}") from None


def roots_of(source: Any, search_roots: Folders) -> list[Path]:
    """Where files that a source refers to are looked for: its own folder first, then those that were named."""
    own = folder_of(source)
    return [*([] if own is None else [own]), *folders_of(search_roots)]


def confined(path: str | Path, roots: Folders) -> Path:
    """The file that a reference means: looked for in `roots`, in order, and refused if it lies outside all of them.

    Links are followed before the question is asked, so that none leads out. Nothing is opened.
    """
    text = str(path).replace("\\", "/")
    folders = [root.resolve() for root in folders_of(roots)]
    listed = ", ".join(f'"{folder}"' for folder in folders) or "none (pass search_roots=...)"
    if not text.strip() or "\0" in text or len(text) > 4096:
        raise FileError(f'"{_short(text)}" is not the name of a file')
    inside = False
    for folder in folders:
        try:
            found = (folder / text).resolve()  # an absolute path replaces the folder
            if not any(found.is_relative_to(f) for f in folders):
                continue
            inside = True
            if found.is_file():
                return found
        except (OSError, RuntimeError, ValueError):
            continue  # a loop of links, a name too long: not a file we can open
    if not inside and folders:
        raise MissingFileError(
            f'"{_short(text)}" leads out of the folders that may be read: {listed}; pass a folder above it as search_roots'
        )
    raise MissingFileError(f'the file "{_short(text)}" is in none of the search roots: {listed}')


# reading -----------------------------------------------------------------------------------------------------------------


def _read(source: Any) -> tuple[str, str | bytes]:
    """The name to show in messages, and what is in the source."""
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        name = "<text>"
        data: str | bytes = source.lstrip("\ufeff")
    elif isinstance(source, str | os.PathLike):
        name, data = _read_path(source)
    elif hasattr(source, "read"):
        name = str(getattr(source, "name", "<file>"))
        try:
            data = source.read(_most_bytes() + 1)
        except (OSError, UnicodeDecodeError, io.UnsupportedOperation) as reason:
            raise FileError(f"{name}: cannot be read: {reason}") from None
    else:
        raise FileError(f"a source is a path, an open file, or XML text, but got {type(source).__name__}")
    if why := excess("file_bytes", len(data)):
        raise FileError(f"{name}: it has at least {why}")
    if not data.strip():
        raise FileError(f"{name}: the file is empty")
    return name, data


def _read_path(source: Any) -> tuple[str, bytes]:
    name = _short(os.fspath(source), 200)
    try:
        if not os.path.exists(source):
            raise FileError(f"{name}: there is no such file")
        if not os.path.isfile(source):
            raise FileError(f"{name}: this is not a regular file")
        with open(source, "rb") as file:
            return name, file.read(_most_bytes() + 1)
    except (OSError, ValueError) as reason:
        if isinstance(reason, FileError):
            raise
        raise FileError(f"{name}: cannot be read: {reason}") from None


def _most_bytes() -> int:
    return int(present().file_bytes)


class _Builder:
    """Turns what expat reports into elements, and stops it at the bounds."""

    def __init__(self, file: str, lines_before: int) -> None:
        self.file, self.lines_before = file, lines_before
        self.budget: Budget = present()  # once, not for every element
        self.root: Element | None = None
        self.open: list[Element] = []
        self.texts: list[list[str]] = []
        self.count = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = self._refuse_doctype
        self.parser.EntityDeclHandler = self._refuse_entity
        self.parser.UnparsedEntityDeclHandler = self._refuse_entity
        self.parser.ExternalEntityRefHandler = self._refuse_entity

    def build(self, data: str | bytes) -> Element:
        try:
            self.parser.Parse(data, True)
        except expat.ExpatError as reason:
            what = expat.errors.messages.get(reason.code, "not well formed")
            raise FileError(f"{self.file}:{reason.lineno + self.lines_before}: this is not XML: {what}") from None
        except (LookupError, UnicodeError, ValueError) as reason:
            if isinstance(reason, FileError):
                raise
            raise FileError(f"{self.file}:{self._line()}: the text cannot be decoded: {reason}") from None
        if self.root is None:
            raise FileError(f"{self.file}: there is no element in it")
        return self.root

    def _line(self) -> int:
        return self.parser.CurrentLineNumber + self.lines_before

    def _refuse(self, message: str) -> FileError:
        return FileError(f"{self.file}:{self._line()}: {message}")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if self.count > self.budget.elements:
            raise self._refuse(f"there are at least {excess('elements', self.count)}")
        if len(self.open) >= self.budget.depth:
            raise self._refuse(f"there are {excess('depth', len(self.open) + 1)}")
        for name, value in attributes.items():
            if len(value) > self.budget.attribute:
                raise self._refuse(f'"{_short(name)}" has {excess("attribute", len(value))}')
            if len(name) > LONGEST_NAME:
                raise self._refuse(
                    f'the name of the attribute "{_short(name)}" is longer than {LONGEST_NAME} characters'
                )
        element = Element(tag, attributes, line=self._line(), file=self.file)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)
        self.texts.append([])

    def _end(self, tag: str) -> None:
        self.open.pop().text = "".join(self.texts.pop()).strip()

    def _characters(self, text: str) -> None:
        if self.texts:
            self.texts[-1].append(text)

    def _refuse_doctype(self, *_: Any) -> None:
        raise self._refuse(
            "a document type (<!DOCTYPE>) is not read, for it can make a file grow or fetch others; remove it"
        )

    def _refuse_entity(self, *_: Any) -> Any:
        raise self._refuse(
            "entities are not read, for they can make a file grow or fetch others; write out what they stand for"
        )


def _float(word: str) -> float:
    if "_" in word:
        raise ValueError(word)  # Python reads 1_000, no other reader does
    return float(word)


def _is_float(word: str) -> bool:
    try:
        _float(word)
    except ValueError:
        return False
    return True


def _short(text: str, length: int = 60) -> str:
    text = " ".join(str(text).split())
    return text if len(text) <= length else text[: length - 3] + "..."


def path_or_text(file: Any) -> Any:
    """An open file can be read once, but is looked at twice; where it has a path, its folder matters, too."""
    name = getattr(file, "name", None)
    if isinstance(name, str) and os.path.isfile(name):
        return Path(name)
    try:
        data = file.read(_most_bytes() + 1)
        return data if isinstance(data, str) else data.decode("utf-8")
    except (OSError, ValueError) as reason:
        raise FileError(f"{name or '<file>'}: cannot be read: {reason}") from None
