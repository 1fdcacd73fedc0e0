"""The parts of a dashboard: rows, panels, queries, variables and links, in the JSON model of Grafana 10.

In a query, `@` stands for the labels that the variables choose: `rate(portcullis_audit_dropped_total{@}[5m])`, and
`{@, code="OK"}` adds more. Every panel tells what it shows, what is normal and what to do otherwise; `act` may name a
section of the runbook by its anchor.
"""

from dataclasses import dataclass, field
from typing import Any

RUNBOOK = "https://portcullis.example/docs/runbook.md"
SELECTED = 'job=~"$job", instance=~"$instance"'
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24

GREEN, YELLOW, ORANGE, RED, BLUE, GREY = "green", "yellow", "orange", "red", "blue", "#808080"
DECISION_COLOURS = {"ALLOW": GREEN, "WARN": YELLOW, "ASK": BLUE, "BLOCK": RED, "NONE": GREY}


@dataclass(frozen=True)
class Query:
    """One PromQL expression and the legend of its series."""

    expr: str
    legend: str = "__auto"
    # Asked for its newest value only, as tables and single figures do.
    is_instant: bool = False
    is_table: bool = False

    def target(self, ref: str) -> dict:
        return {
            "datasource": SOURCE,
            "editorMode": "code",
            "expr": self.expr.replace("@", SELECTED),
            "format": "table" if self.is_table else "time_series",
            "instant": self.is_instant,
            "legendFormat": self.legend,
            "range": not self.is_instant,
            "refId": ref,
        }


@dataclass
class Panel:
    """One panel; its place is given by `dashboard`."""

    title: str
    kind: str
    queries: list[Query]
    description: str
    width: int
    height: int
    defaults: dict
    options: dict
    overrides: list[dict] = field(default_factory=list)
    transformations: list[dict] = field(default_factory=list)
    links: list[dict] = field(default_factory=list)

    def json(self, number: int, x: int, y: int) -> dict:
        panel: dict[str, Any] = {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": SOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "fieldConfig": {"defaults": self.defaults, "overrides": self.overrides},
            "options": self.options,
            "targets": [query.target(chr(ord("A") + at)) for at, query in enumerate(self.queries)],
            "transformations": self.transformations,
        }
        if self.links:
            panel["links"] = self.links
        return panel


@dataclass(frozen=True)
class Row:
    """A title over the panels that follow."""

    title: str


def told(shows: str, normal: str, act: str) -> str:
    """The description of a panel."""
    return f"{shows}\n\n**Normal:** {normal}\n\n**Otherwise:** {act}"


def steps(*pairs: tuple[float, str], base: str = GREEN) -> dict:
    """Colours from values on; `base` holds below the first."""
    return {
        "mode": "absolute",
        "steps": [{"color": base, "value": None}, *({"color": colour, "value": at} for at, colour in pairs)],
    }


def runbook_link(anchor: str) -> list[dict]:
    """The link of a panel to its section of the runbook."""
    return [
        {
            "title": "Runbook",
            "type": "link",
            "icon": "doc",
            "tooltip": "",
            "url": f"{RUNBOOK}#{anchor}",
            "tags": [],
            "asDropdown": False,
            "targetBlank": True,
            "includeVars": False,
            "keepTime": False,
        }
    ]


def stat(
    title: str,
    expr: str,
    *,
    shows: str,
    normal: str,
    act: str,
    runbook: str = "",
    unit: str = "short",
    thresholds: dict,
    decimals: int | None = None,
    empty: str = "no data",
    width: int = 3,
    height: int = 4,
) -> Panel:
    """One figure, coloured by its thresholds, over its course."""
    defaults: dict[str, Any] = {
        "color": {"mode": "thresholds"},
        "mappings": [],
        "noValue": empty,
        "thresholds": thresholds,
        "unit": unit,
    }
    if decimals is not None:
        defaults["decimals"] = decimals
    options = {
        "colorMode": "background",
        "graphMode": "area",
        "justifyMode": "auto",
        "orientation": "auto",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "textMode": "value",
    }
    return Panel(
        title, "stat", [Query(expr, title)], told(shows, normal, act), width, height, defaults, options,
        links=runbook_link(runbook) if runbook else [],
    )


def lines(
    title: str,
    *queries: Query,
    shows: str,
    normal: str,
    act: str,
    runbook: str = "",
    unit: str = "short",
    thresholds: dict | None = None,
    colours: dict[str, str] | None = None,
    stacked: bool = False,
    least: float | None = 0,
    most: float | None = None,
    logarithmic: bool = False,
    width: int = 12,
    height: int = 8,
) -> Panel:
    """Series over time. With thresholds, lines are drawn where they lie; `colours` holds those of single series."""
    custom: dict[str, Any] = {
        "axisPlacement": "auto",
        "drawStyle": "line",
        "fillOpacity": 30 if stacked else 8,
        "lineInterpolation": "linear",
        "lineWidth": 1,
        "scaleDistribution": {"type": "log", "log": 10} if logarithmic else {"type": "linear"},
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"group": "A", "mode": "normal" if stacked else "none"},
        "thresholdsStyle": {"mode": "dashed" if thresholds else "off"},
    }
    defaults: dict[str, Any] = {
        "color": {"mode": "palette-classic"},
        "custom": custom,
        "mappings": [],
        "thresholds": thresholds or steps(),
        "unit": unit,
    }
    if least is not None and not logarithmic:
        defaults["min"] = least
    if most is not None:
        defaults["max"] = most
    overrides = [
        {
            "matcher": {"id": "byName", "options": name},
            "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": colour}}],
        }
        for name, colour in (colours or {}).items()
    ]
    options = {
        "legend": {"calcs": ["lastNotNull", "max"], "displayMode": "table", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return Panel(
        title, "timeseries", list(queries), told(shows, normal, act), width, height, defaults, options, overrides,
        links=runbook_link(runbook) if runbook else [],
    )


def bars(
    title: str,
    query: Query,
    *,
    shows: str,
    normal: str,
    act: str,
    runbook: str = "",
    unit: str = "short",
    thresholds: dict,
    width: int = 12,
    height: int = 8,
) -> Panel:
    """One bar for each series, at its newest value."""
    defaults = {
        "color": {"mode": "thresholds"},
        "mappings": [],
        "min": 0,
        "noValue": "none",
        "thresholds": thresholds,
        "unit": unit,
    }
    options = {
        "displayMode": "basic",
        "minVizHeight": 12,
        "minVizWidth": 8,
        "orientation": "horizontal",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "showUnfilled": True,
        "valueMode": "color",
    }
    return Panel(
        title, "bargauge", [query], told(shows, normal, act), width, height, defaults, options,
        links=runbook_link(runbook) if runbook else [],
    )


def table(
    title: str,
    *queries: Query,
    by: str,
    columns: dict[str, str],
    shows: str,
    normal: str,
    act: str,
    runbook: str = "",
    width: int = 12,
    height: int = 8,
) -> Panel:
    """One line for each value of the label `by`; `columns` maps fields to their titles, and the others are left out."""
    hidden = ["Time", *(f"Time {at}" for at in range(1, len(queries) + 1))]
    hidden += [f"Value #{chr(ord('A') + at)}" for at in range(len(queries))]
    transformations = [
        {"id": "joinByField", "options": {"byField": by, "mode": "outer"}},
        {
            "id": "organize",
            "options": {
                "excludeByName": {name: True for name in hidden if name not in columns},
                "indexByName": {name: at for at, name in enumerate(columns)},
                "renameByName": columns,
            },
        },
    ]
    defaults = {
        "color": {"mode": "thresholds"},
        "custom": {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False},
        "mappings": [],
        "noValue": "none",
        "thresholds": steps(),
        "unit": "none",
    }
    options = {
        "cellHeight": "sm",
        "footer": {"countRows": False, "fields": "", "reducer": ["sum"], "show": False},
        "showHeader": True,
    }
    return Panel(
        title, "table", list(queries), told(shows, normal, act), width, height, defaults, options,
        transformations=transformations, links=runbook_link(runbook) if runbook else [],
    )


def note(title: str, content: str, *, width: int = WIDTH, height: int = 4) -> Panel:
    """Words, for what no query can tell."""
    options = {
        "code": {"language": "plaintext", "showLineNumbers": False, "showMiniMap": False},
        "content": content,
        "mode": "markdown",
    }
    return Panel(title, "text", [], content, width, height, {}, options)


def quantile(share: float, metric: str, by: str, window: str = "$__rate_interval", matching: str = "") -> str:
    """That quantile of a histogram, for each value of the labels `by` (none: of all together)."""
    labels = ", ".join(part for part in ("le", by) if part)
    selector = "@" + (f", {matching}" if matching else "")
    return f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket{{{selector}}}[{window}])))"


def failing(window: str, by: str = "") -> str:
    """Calls a second that ended in an error of ours, as the recording rules count them."""
    counted = "rate(portcullis_requests_total{@, %s}[%s])"
    ours = counted % ('code=~"UNAVAILABLE|INTERNAL|UNKNOWN|DATA_LOSS"', window)
    late = counted % ('code="DEADLINE_EXCEEDED", rpc!="StreamMonitor"', window)
    return f"sum{by} ({ours} or {late})"


def dashboard(
    uid: str, title: str, description: str, *content: Row | Panel, filters: dict[str, tuple[str, str]] | None = None
) -> dict:
    """A whole dashboard. `filters` adds variables: name -> (metric, label) that they take their values from."""
    return {
        "id": None,
        "uid": uid,
        "title": title,
        "description": description,
        "tags": ["portcullis"],
        "timezone": "browser",
        "editable": True,
        "graphTooltip": 1,
        "time": {"from": "now-3h", "to": "now"},
        "timepicker": {"refresh_intervals": ["10s", "30s", "1m", "5m", "15m"]},
        "fiscalYearStartMonth": 0,
        "refresh": "30s",
        "schemaVersion": 38,
        "version": 1,
        "panels": placed(content),
        "templating": {"list": variables(filters or {})},
        "annotations": {"list": [reloads()]},
        "links": links(),
    }


def placed(content: tuple[Row | Panel, ...]) -> list[dict]:
    """Panels from left to right, a new line where one no longer fits or a row begins."""
    out: list[dict] = []
    x = y = line_height = 0
    for number, one in enumerate(content, start=1):
        if isinstance(one, Row) or x + one.width > WIDTH:
            y, x, line_height = y + line_height, 0, 0
        if isinstance(one, Row):
            place = {"x": 0, "y": y, "w": WIDTH, "h": 1}
            out.append(
                {"id": number, "type": "row", "title": one.title, "collapsed": False, "gridPos": place, "panels": []}
            )
            y += 1
        else:
            out.append(one.json(number, x, y))
            x, line_height = x + one.width, max(line_height, one.height)
    return out


def variables(filters: dict[str, tuple[str, str]]) -> list[dict]:
    """Data source, job and instance, and the filters of the dashboard."""
    source = {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "regex": "",
        "hide": 0,
        "skipUrlSync": False,
        "multi": False,
        "includeAll": False,
        "refresh": 1,
        "current": {},
        "options": [],
    }
    # A job without a value would choose every target of the data source, so that "all" is the list of its values. A
    # replica that has been away for longer than the time range is still one of "all".
    of_job = variable("job", "Job", 'label_values(up{job=~".*portcullis.*"}, job)', every="")
    of_instance = variable("instance", "Replica", 'label_values(up{job=~"$job"}, instance)', every=".+")
    others = [
        variable(name, name.capitalize(), f"label_values({metric}{{{SELECTED}}}, {label})", every=".+")
        for name, (metric, label) in filters.items()
    ]
    return [source, of_job, of_instance, *others]


def variable(name: str, label: str, query: str, *, every: str) -> dict:
    """A variable with the values that a query finds; `every` is the regular expression of "all", if not the list."""
    out = {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"qryType": 1, "query": query, "refId": f"variable-{name}"},
        "regex": "",
        "sort": 1,
        "refresh": 2,
        "hide": 0,
        "skipUrlSync": False,
        "multi": True,
        "includeAll": True,
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "options": [],
    }
    return out | {"allValue": every} if every else out


def reloads() -> dict:
    """Marks where a policy was changed: what is decided changes there for a reason."""
    return {
        "name": "Policy reloads",
        "datasource": SOURCE,
        "enable": True,
        "hide": False,
        "iconColor": "purple",
        "expr": f"sum by (job, outcome) (increase(portcullis_policy_reloads_total{{{SELECTED}}}[1m])) > 0",
        "step": "60s",
        "titleFormat": "policy {{outcome}}",
        "textFormat": "{{job}}",
    }


def links() -> list[dict]:
    """The other dashboards with the same choice and time, and the runbook."""
    common = {"tooltip": "", "includeVars": False, "keepTime": False, "targetBlank": True}
    others = common | {
        "title": "Portcullis",
        "type": "dashboards",
        "icon": "external link",
        "url": "",
        "tags": ["portcullis"],
        "asDropdown": False,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
    }
    runbook = common | {
        "title": "Runbook",
        "type": "link",
        "icon": "doc",
        "url": RUNBOOK,
        "tags": [],
        "asDropdown": False,
    }
    return [others, runbook]
