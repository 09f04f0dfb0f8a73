"""The page at `/docs`: every route of the API with its parameters, examples and errors, as HTML."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
pre, code { font: 0.875rem/1.45 ui-monospace, monospace }
pre { overflow-x: auto; padding: 0.75rem; border: 1px solid #8886; border-radius: 4px }
summary { cursor: pointer; padding: 0.3rem 0 }
summary b { display: inline-block; min-width: 4.5rem }
details details { margin-left: 1rem }
table { border-collapse: collapse } td, th { padding: 0.2rem 0.8rem 0.2rem 0; text-align: left;
  vertical-align: top }
nav a { margin-right: 1rem }
"""
METHODS = ("get", "post", "put", "patch", "delete")


def api_page(described: Mapping[str, Any]) -> str:
    """The whole page."""
    groups = _groups(described)
    links = "".join(f'<a href="#{_slug(tag)}">{escape(tag)}</a>' for tag in groups)
    parts = "".join(_group(described, tag, routes) for tag, routes in groups.items())
    about = "".join(
        f"<p>{escape(each)}</p>" for each in described["info"]["description"].split("\n\n")
    )
    title = escape(described["info"]["title"])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}: the API</title><style>{STYLE}</style></head><body><main>"
        f"<h1>{title}: the API</h1>{about}"
        '<p>For programs: <a href="/api/v1/openapi.json">openapi.json</a>.</p>'
        f'<nav aria-label="Groups of routes">{links}</nav>{parts}</main></body></html>'
    )


Route = tuple[str, str, Mapping[str, Any]]


def _groups(described: Mapping[str, Any]) -> dict[str, list[Route]]:
    found: dict[str, list[Route]] = {}
    for path, operations in described["paths"].items():
        for method in METHODS:
            if method in operations:
                operation = operations[method]
                tag = (operation.get("tags") or ["other"])[0]
                found.setdefault(tag, []).append((method, path, operation))
    return found


def _group(described: Mapping[str, Any], tag: str, routes: list[Route]) -> str:
    listed = "".join(_route(described, *each) for each in routes)
    return f'<section><h2 id="{_slug(tag)}">{escape(tag.capitalize())}</h2>{listed}</section>'


def _route(
    described: Mapping[str, Any], method: str, path: str, operation: Mapping[str, Any]
) -> str:
    return (
        f'<details id="{escape(operation["operationId"])}"><summary><b>{method.upper()}</b> '
        f"<code>{escape(path)}</code></summary>"
        f"<p>{escape(operation.get('description', ''))}</p>"
        f"{_parameters(operation)}{_body(described, operation)}{_answers(operation)}</details>"
    )


def _parameters(operation: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(each['name'])}</code></td><td>{escape(each['in'])}</td>"
        f"<td>{escape(each.get('description', ''))}{'' if each.get('required') else ' (optional)'}"
        "</td></tr>"
        for each in operation.get("parameters", ())
    )
    if not rows:
        return ""
    return f"<table><tr><th>parameter</th><th>in</th><th>what it is</th></tr>{rows}</table>"


def _body(described: Mapping[str, Any], operation: Mapping[str, Any]) -> str:
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema")
    if schema is None:
        return ""
    members = list(_members(described, schema))
    if not members:
        return "<p>The body is JSON.</p>"
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(kind)}</td><td>{escape(about)}</td></tr>"
        for name, kind, about in members
    )
    return f"<table><tr><th>member of the body</th><th>type</th><th></th></tr>{rows}</table>"


def _members(
    described: Mapping[str, Any], schema: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    found = _resolved(described, schema)
    required = found.get("required", ())
    for name, each in found.get("properties", {}).items():
        kind = each.get("type") or " or ".join(
            str(one.get("type", "object")) for one in each.get("anyOf", [{}])
        )
        about = each.get("description", "") + ("" if name not in required else " (required)")
        yield name, kind, about.strip()


def _resolved(described: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    for each in [schema, *schema.get("anyOf", ())]:
        if "$ref" in each:
            found: Mapping[str, Any] = described["components"]["schemas"][
                each["$ref"].rpartition("/")[2]
            ]
            return found
    return schema


def _answers(operation: Mapping[str, Any]) -> str:
    parts = []
    for status, answer in sorted(operation["responses"].items()):
        said = f"<b>{escape(status)}</b> {escape(answer.get('description', ''))}"
        example = answer.get("content", {}).get("application/json", {}).get("example")
        if example is None:
            parts.append(f"<p>{said}</p>")
        else:
            text = escape(json.dumps(example, indent=2, ensure_ascii=False))
            parts.append(f"<details open><summary>{said}</summary><pre>{text}</pre></details>")
    return "".join(parts)


def _slug(text: str) -> str:
    return text.replace(" ", "-")
