"""The OpenAPI document as a page for people: one file, no scripts, nothing fetched from elsewhere."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from typing import Any

__all__ = ["page"]

_STYLE = """
:root { color-scheme: light dark; --line: light-dark(#d9dee5, #39414d); --soft: light-dark(#f4f6f9, #1d2229);
  --dim: light-dark(#5b6673, #9aa6b4); --get: light-dark(#0b6e4f, #58c9a0); --post: light-dark(#7a3fb0, #c49af0);
  --bad: light-dark(#a8321f, #f09080); --link: light-dark(#0a58b5, #7ab4ff) }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 6rem; font: 16px/1.5 system-ui, sans-serif }
a { color: var(--link); text-decoration: none } a:hover { text-decoration: underline }
h1 { font-size: 1.6rem; margin: 0 } h1 small { color: var(--dim); font-weight: normal; font-size: 1rem }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .25rem } h3 { font-size: .95rem; margin: 1rem 0 .25rem }
p { margin: .35rem 0; max-width: 46rem } .dim { color: var(--dim) }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 1rem 0 0 }
code, pre { font: .875em/1.5 ui-monospace, monospace }
pre { background: var(--soft); border-radius: 6px; padding: .6rem .8rem; margin: .35rem 0; overflow-x: auto }
details { border: 1px solid var(--line); border-radius: 8px; margin: .5rem 0 }
summary { cursor: pointer; padding: .5rem .8rem; display: flex; gap: .75rem; align-items: baseline; flex-wrap: wrap }
summary b { font: 600 .8rem ui-monospace, monospace; min-width: 2.6rem }
.get { color: var(--get) } .post { color: var(--post) }
summary span { color: var(--dim); margin-left: auto }
details > div { padding: 0 .8rem .8rem; border-top: 1px solid var(--line) }
table { border-collapse: collapse; width: 100%; font-size: .93rem }
td, th { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line) }
th { color: var(--dim); font-weight: normal; font-size: .85rem } td:first-child { white-space: nowrap }
.bad { color: var(--bad) } :target { outline: 2px solid var(--link); outline-offset: 3px; border-radius: 8px }
"""


def page(document: bytes) -> bytes:
    """Write an OpenAPI document as HTML."""
    described: dict[str, Any] = json.loads(document)
    info, tags = described["info"], described["tags"]
    links = "".join(f'<a href="#{_id(name)}">{_e(name)}</a>' for name in (*(tag["name"] for tag in tags), "Types"))
    body = [
        f"<h1>{_e(info['title'])} <small>{_e(info['version'])}</small></h1>",
        f"<p>{_text(info['description'])}</p>{_keys(described)}",
        f'<nav>{links}<a href="openapi.json">openapi.json</a></nav>',
    ]
    for tag in tags:
        body.append(f'<h2 id="{_id(tag["name"])}">{_e(tag["name"])}</h2><p class="dim">{_text(tag["description"])}</p>')
        body += _operations(described["paths"], tag["name"])
    body.append('<h2 id="types">Types</h2>')
    body += (_type(name, schema) for name, schema in described["components"]["schemas"].items())
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_e(info['title'])}</title><style>{_STYLE}</style></head>"
    )
    return f"{head}<body>{''.join(body)}</body></html>".encode()


def _keys(described: dict[str, Any]) -> str:
    if "security" not in described:
        return ""
    return "<p>This server asks for an API key: as <code>X-API-Key</code>, or as a bearer token.</p>"


def _operations(paths: dict[str, Any], tag: str) -> Iterable[str]:
    for path, methods in paths.items():
        for method, operation in methods.items():
            named = paths.get(f"/{{env_name}}{path}", {})
            if tag in operation["tags"] and method not in named:
                bare = path.removeprefix("/{env_name}")
                yield _operation(method, path, bare if bare != path else None, operation)


def _operation(method: str, path: str, bare: str | None, operation: dict[str, Any]) -> str:
    parts = []
    if bare is not None:
        whose = "any session" if "X-Session-ID" in str(operation) else "the first environment"
        parts.append(f'<p class="dim">Also <code>{_e(bare)}</code>, for {whose}.</p>')
    if "description" in operation:
        parts.append(f"<p>{_text(operation['description'])}</p>")
    if "security" in operation:
        parts.append("<p>Asks for no key.</p>")
    if parameters := operation.get("parameters"):
        rows = [
            (
                f"<code>{_e(item['name'])}</code>",
                _e(item["in"] + ("" if item.get("required") else ", optional")),
                _text(item.get("description", "")),
            )
            for item in parameters
        ]
        parts.append(f"<h3>Parameters</h3>{_table((), rows)}")
    if "requestBody" in operation:
        media = operation["requestBody"]["content"]["application/json"]
        parts.append(f"<h3>Body: <code>{_shape(media['schema'])}</code></h3>")
        if "example" in media:
            parts.append(f"<pre>{_e(json.dumps(media['example']))}</pre>")
    parts += _answers(operation["responses"])
    return (
        f'<details id="{_e(operation["operationId"])}"><summary><b class="{method}">{method.upper()}</b>'
        f"<code>{_e(path)}</code><span>{_e(operation['summary'])}</span></summary><div>{''.join(parts)}</div></details>"
    )


def _answers(responses: dict[str, Any]) -> Iterable[str]:
    for kind, media in responses["200"]["content"].items():
        if "x-events" not in media:
            yield f'<h3>Answer <span class="dim">{_e(kind)}</span></h3><pre>{_shape(media["schema"])}</pre>'
            continue
        rows = [
            (
                f"<code>{_e(name)}</code>",
                _shape(event["schema"]) if "schema" in event else "text",
                _text(event["description"]),
            )
            for name, event in media["x-events"].items()
        ]
        yield f'<h3>Answer <span class="dim">{_e(kind)}</span></h3>{_table(("event", "data", ""), rows)}'
    rows = [
        (f'<b class="bad">{status}</b>', _text(response["description"]), "Retry-After" if "headers" in response else "")
        for status, response in responses.items()
        if status != "200"
    ]
    yield f"<h3>Errors</h3>{_table((), rows)}"


def _type(name: str, schema: dict[str, Any]) -> str:
    inside = f"<p>{_text(schema.get('description', ''))}</p><pre>{_shape(schema)}</pre>"
    head = f'<details id="type-{_id(name)}" open><summary><code>{_e(name)}</code></summary>'
    return f"{head}<div>{inside}</div></details>"


def _shape(schema: Any, indent: str = "") -> str:
    """A JSON Schema in short, as HTML: `{name: text, tries?: integer | null}`."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#type-{_id(name)}">{_e(name)}</a>'
    if "const" in schema or "enum" in schema:
        return " | ".join(_e(json.dumps(value)) for value in schema.get("enum", [schema.get("const")]))
    for several in ("anyOf", "allOf"):
        if several in schema:
            return " | ".join(_shape(option, indent) for option in schema[several])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"[{_shape(schema.get('items', {}), indent)}]"
    if "properties" in schema:
        needed = schema.get("required", ())
        deeper = f"{indent}  "
        lines = (
            f"{deeper}{_e(key)}{'' if key in needed else '?'}: {_shape(value, deeper)}\n"
            for key, value in schema["properties"].items()
        )
        return f"{{\n{''.join(lines)}{indent}}}"
    if isinstance(kind, list):
        return " | ".join(map(_e, kind))
    values = schema.get("additionalProperties")
    return f"{{…: {_shape(values, indent)}}}" if isinstance(values, dict) else _e("text" if kind == "string" else kind)


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    head = f"<tr>{''.join(f'<th>{_e(word)}</th>' for word in heads)}</tr>" if heads else ""
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{head}{body}</table>"


def _text(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", _e(text))


def _id(name: str) -> str:
    return re.sub(r"\W+", "-", name.lower())


_e = html.escape
