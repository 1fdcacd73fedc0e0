"""The files under test, read: dashboards, rules, runbook, and every query that stands in them."""

import json
import pathlib
import re

import promql_parser
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRAFANA = ROOT / "deploy" / "grafana"
PROMETHEUS = ROOT / "deploy" / "prometheus"
RUNBOOK = ROOT / "docs" / "runbook.md"

DASHBOARDS = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(GRAFANA.glob("*.json"))}
RULE_FILES = sorted(PROMETHEUS.glob("*.rules.yaml"))
RULES = [
    rule
    for file in RULE_FILES
    for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
ALERTS = [rule for rule in RULES if "alert" in rule]
RECORDED = {rule["record"] for rule in RULES if "record" in rule}


def panels(dashboard: dict):
    """The panels of a dashboard, rows left out."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def dashboard_queries():
    """Every query of every dashboard: its name and the expression, as it stands in the file."""
    for name, dashboard in DASHBOARDS.items():
        for panel in panels(dashboard):
            for target in panel["targets"]:
                yield f"{name}: {panel['title']}: {target['refId']}", target["expr"]
        for annotation in dashboard["annotations"]["list"]:
            yield f"{name}: annotation {annotation['name']}", annotation["expr"]


def with_values(expr: str) -> str:
    """A query of a dashboard with its variables replaced, for a test whose targets are scraped once a second."""
    values = {
        "$__rate_interval": "10s",
        "$__range": "2m",
        "$job": ".*portcullis.*",
        "$instance": ".+",
        "$plugin": ".+",
        "$interceptor": ".+",
    }
    for name, value in values.items():
        expr = re.sub(re.escape(name) + r"\b", lambda _, value=value: value, expr)
    assert "$" not in expr, f"a variable without a value: {expr}"
    return expr


def anchors() -> set[str]:
    """The anchors of the runbook's headings, as code hosts make them."""
    headings = re.findall(r"^#+ +(.+?) *$", RUNBOOK.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def metrics_of(expr: str) -> set[str]:
    """The metrics that an expression names; parses it."""
    return set(_metrics_below(promql_parser.parse(expr)))


def _metrics_below(node):
    if isinstance(node, promql_parser.VectorSelector):
        assert node.name, "a selector without a name"
        yield node.name
    for part in ("expr", "lhs", "rhs", "param", "vector_selector"):
        below = getattr(node, part, None)
        if isinstance(below, promql_parser.Expr):
            yield from _metrics_below(below)
    for argument in getattr(node, "args", []):
        yield from _metrics_below(argument)
