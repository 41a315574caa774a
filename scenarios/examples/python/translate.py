"""Paths, texts and results: what goes to a language server, and what comes back."""

import os
import stat
import sys
import urllib.parse

METHODS = {
    "goToDefinition": ("textDocument/definition", "definitionProvider"),
    "findReferences": ("textDocument/references", "referencesProvider"),
    "goToImplementation": ("textDocument/implementation", "implementationProvider"),
    "hover": ("textDocument/hover", "hoverProvider"),
}


class Failure(Exception):
    """What a request fails with: a stable code, and a message for people."""

    def __init__(self, code, message, server_code=None):
        super().__init__(message)
        self.code = code
        self.server_code = server_code

    @classmethod
    def of_server(cls, error):
        code, message = error.get("code"), error.get("message")
        stale = code in (-32801, -32802)
        told = message if isinstance(message, str) and message else "no message"
        return cls("LSP_STALE" if stale else "LSP_SERVER_ERROR",
                   f"the language server answered with error {code}: {told}", code)

    def data(self):
        own = {} if self.server_code is None else {"serverCode": self.server_code}
        return {"code": self.code, **own}


def malformed(what):
    return Failure("LSP_MALFORMED_RESPONSE", f"the language server's answer: {what}")


def uri_of(path):
    return "file://" + urllib.parse.quote(os.fsencode(path), safe="/")


def read_source(workspace, name, config):
    """The canonical path and the text of a file of the workspace."""
    rejected = lambda why: Failure("LSP_SOURCE_REJECTED", f"{name}: {why}")
    try:
        path = os.path.realpath(os.path.join(workspace, name), strict=True)
        if os.path.commonpath([workspace, path]) != workspace:
            raise rejected(f"it lies outside the workspace {workspace}")
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise rejected("it is no regular file")
        with open(path, "rb") as file:
            limit = min(config["maxDocumentBytes"], sys.maxsize - 1)
            content = b""
            while len(content) <= limit and (piece := file.read(min(1 << 16, limit + 1))):
                content += piece
    except (OSError, ValueError) as error:
        raise rejected(error) from None
    if len(content) > config["maxDocumentBytes"]:
        raise rejected(f"it is larger than {config['maxDocumentBytes']} bytes")
    if b"\0" in content:
        raise rejected("it is no text: it has a NUL byte")
    try:
        return path, content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise rejected(f"it is not UTF-8: {error}") from None


def encoding_fits(capabilities):
    return capabilities.get("positionEncoding", "utf-16") == "utf-16"


def sync_fits(sync):
    if isinstance(sync, dict):
        return sync.get("openClose") is True
    return type(sync) in (int, float) and sync in (1, 2)


def number(value):
    if type(value) not in (int, float) or value < 0 or value != int(value):
        raise malformed(f"{value!r} is no place in a document")
    return int(value)


def position(value):
    if not isinstance(value, dict):
        raise malformed("a position is missing")
    return {"line": number(value.get("line")), "character": number(value.get("character"))}


def range_of(value):
    if not isinstance(value, dict):
        raise malformed("a range is missing")
    return {"start": position(value.get("start")), "end": position(value.get("end"))}


def location(value):
    if not isinstance(value, dict):
        raise malformed("a location is no object")
    for uri, place in (("uri", "range"), ("targetUri", "targetSelectionRange")):
        if isinstance(value.get(uri), str):
            return {"uri": value[uri], "range": range_of(value.get(place))}
    raise malformed("a location has no URI")


def locations(result):
    if result is None:
        return []
    return [location(one) for one in (result if isinstance(result, list) else [result])]


def text(part):
    """A MarkedString: verbatim, or code that becomes a block."""
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and isinstance(part.get("language"), str) \
            and isinstance(part.get("value"), str):
        if not part["value"].strip():
            return ""
        fence = "```"
        while fence in part["value"]:
            fence += "`"
        return f"{fence}{part['language']}\n{part['value']}\n{fence}"
    raise malformed("a part of a hover has no known shape")


def hover(result):
    if result is None:
        return None
    contents = result.get("contents") if isinstance(result, dict) else None
    if isinstance(contents, dict) and contents.get("kind") in ("markdown", "plaintext"):
        if not isinstance(contents.get("value"), str):
            raise malformed("a hover has no text")
        told = contents["value"]
    elif isinstance(contents, list):
        told = "\n\n".join(part for part in map(text, contents) if part)
    else:
        told = text(contents)
    place = None if result.get("range") is None else range_of(result["range"])
    if not told:
        return None
    return {"contents": told} if place is None else {"contents": told, "range": place}
