"""The dashboards: what they are made of, and what each of their queries answers under load."""

import importlib.util
import json
import re
import sys
import urllib.request

import promql_parser
import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import bargauge, dashboard as model, stat, table, text, timeseries

import prometheus
from files import DASHBOARDS, GRAFANA, RUNBOOK, anchors, dashboard_queries, metrics_of, panels, with_values

TITLES = {
    "overview", "decisions", "plugins", "streams", "reviews", "llm", "saturation",
}

# Made by Prometheus itself, one for each target.
OF_PROMETHEUS = {"up"}

# Queries that rightly have no value under this load, and why.
EMPTY = {
    "overview: Blocked share, and a day before: B": "Prometheus has run for less than a day",
}
# Queries that have values and rightly no other than 0, and why.
ZERO = {
    "decisions: Personal data excused: A": "no policy of the load has a list",
    "overview: Incidents lost: A": "the database takes every incident",
    "streams: Incidents lost, last hour: A": "the database takes every incident",
    "streams: Incidents lost: A": "the database takes every incident",
}
# Queries that have values, and whether one of them is other than 0 depends on the machine.
EITHER = {"saturation: Verdicts by rule later than 50 ms: A"}

QUERIES = dict(dashboard_queries())


def test_they_are_the_seven():
    assert DASHBOARDS.keys() == TITLES
    assert len({dashboard["uid"] for dashboard in DASHBOARDS.values()}) == len(TITLES)


def test_the_files_are_what_the_generator_makes():
    sys.path.insert(0, str(GRAFANA))
    try:
        spec = importlib.util.spec_from_file_location("make", GRAFANA / "make.py")
        make = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(make)
    finally:
        sys.path.remove(str(GRAFANA))
    assert make.stale() == []


def lost(given, kept, path=""):
    """Places of `given` that are missing or different in `kept`."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            if value is None and key not in kept:
                continue
            if key in kept:
                yield from lost(value, kept[key], f"{path}/{key}")
            else:
                yield f"{path}/{key}"
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for at, (one, other) in enumerate(zip(given, kept)):
            yield from lost(one, other, f"{path}/{at}")
    elif given != kept:
        yield f"{path}: {given!r} became {kept!r}"


def through(kind, value):
    """A value read and written by a class of Grafana's own model of dashboards."""
    return json.loads(json.dumps(kind.from_json(value), cls=JSONEncoder))


@pytest.mark.parametrize("name", DASHBOARDS)
def test_grafanas_model_knows_every_field(name):
    register_default_plugins()
    dashboard = DASHBOARDS[name]
    unknown = set(lost(dashboard, through(model.Dashboard, dashboard)))
    # These belong to annotations of the Prometheus data source, which the model does not describe.
    assert unknown == {f"/annotations/list/0/{field}" for field in ("step", "titleFormat", "textFormat")}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_grafanas_model_knows_every_option_of_its_panels(name):
    kinds = {"stat": stat, "timeseries": timeseries, "bargauge": bargauge, "table": table, "text": text}
    for panel in panels(DASHBOARDS[name]):
        kind = kinds[panel["type"]]
        unknown = list(lost(panel["options"], through(kind.Options, panel["options"])))
        custom = panel["fieldConfig"]["defaults"].get("custom")
        if custom and hasattr(kind, "FieldConfig"):
            unknown += lost(custom, through(kind.FieldConfig, custom))
        assert unknown == [], panel["title"]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_is_whole(name):
    dashboard = DASHBOARDS[name]
    assert re.fullmatch(r"portcullis-[a-z]+", dashboard["uid"])
    assert dashboard["schemaVersion"] >= 36 and dashboard["id"] is None
    assert dashboard["description"]
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert {"datasource", "job", "instance"} <= variables.keys()
    links = {link["type"]: link for link in dashboard["links"]}
    assert links["dashboards"]["tags"] == ["portcullis"] and "portcullis" in dashboard["tags"]
    assert links["dashboards"]["includeVars"] and links["dashboards"]["keepTime"]
    assert links["link"]["url"].endswith(f"docs/{RUNBOOK.name}")
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_do_not_overlap(name):
    taken = {}
    for panel in DASHBOARDS[name]["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        for cell in ((x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])):
            assert cell not in taken, f"{panel['title']} lies over {taken[cell]}"
            taken[cell] = panel["title"]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_panel_tells_what_is_normal_and_what_to_do(name):
    sections = anchors()
    for panel in panels(DASHBOARDS[name]):
        title, defaults = panel["title"], panel["fieldConfig"]["defaults"]
        assert "**Normal:**" in panel["description"] and "**Otherwise:**" in panel["description"], title
        for link in panel.get("links", []):
            assert link["url"].partition("#")[2] in sections, f"{title}: {link['url']}"
        if panel["type"] == "text":
            continue
        assert defaults["unit"] and defaults["thresholds"]["steps"], title
        assert panel["datasource"]["uid"] == "${datasource}", title
        assert panel["targets"], title
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}", title
            assert target["legendFormat"], title
            # Every query keeps to what was chosen above.
            selectors = re.findall(r"\{([^}]*)\}", target["expr"])
            assert selectors and all('job=~"$job"' in one and 'instance=~"$instance"' in one for one in selectors), title


@pytest.mark.parametrize("where", QUERIES)
def test_a_query_parses(where):
    promql_parser.parse(with_values(QUERIES[where]))


def selector_of(variable):
    """The series and the label that a variable takes its values from."""
    return re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"]).groups()


def test_every_metric_is_one_that_a_server_exposes(observed):
    prometheus.until(
        lambda: observed.prometheus.values("count(count by (backend) (portcullis_llm_cost_usd_total)) > 0"),
        "a model was asked, so that its series are there",
    )
    exposed = set()
    for server in observed.servers:
        with urllib.request.urlopen(f"http://{server.http}/metrics", timeout=10) as answer:
            exposed |= set(re.findall(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)[{ ]", answer.read().decode(), re.MULTILINE))
    asked = {name for expr in QUERIES.values() for name in metrics_of(with_values(expr))}
    for dashboard in DASHBOARDS.values():
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                asked |= metrics_of(with_values(selector_of(variable)[0]))
    assert "portcullis_requests_total" in asked
    assert asked - exposed - OF_PROMETHEUS == set()
    # And the other way round: no metric is left for nobody to look at.
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in exposed if name.startswith("portcullis_")}
    shown = {re.sub(r"_(bucket|sum|count)$", "", name) for name in asked}
    assert families - shown == set(), "no dashboard shows these"


@pytest.mark.parametrize("where", QUERIES)
def test_a_query_answers_under_load(observed, where):
    expr = with_values(QUERIES[where])
    if where in EMPTY:
        assert observed.prometheus.series(expr) == [], f"{where} has values now: take it off the list"
        return
    if where in ZERO:
        values = prometheus.until(lambda: observed.prometheus.values(expr), f"{where} has a value: {expr}")
        assert set(values) == {0.0}, f"{where} has values now: take it off the list"
        return
    if where in EITHER:
        prometheus.until(lambda: observed.prometheus.values(expr), f"{where} has a value: {expr}")
        return
    prometheus.until(lambda: any(observed.prometheus.values(expr)), f"{where} has a value other than 0: {expr}")


@pytest.mark.parametrize("name", DASHBOARDS)
def test_variables_find_their_values(observed, name):
    for variable in DASHBOARDS[name]["templating"]["list"]:
        if variable["type"] != "query":
            continue
        metric, label = selector_of(variable)
        found = {series.get(label) for series in observed.prometheus.series(with_values(metric))}
        assert found and None not in found, variable["name"]


def test_the_tables_name_queries_that_are_there():
    assert EMPTY.keys() | ZERO.keys() | EITHER <= QUERIES.keys()


def test_nothing_failed_but_what_was_to_fail(observed):
    assert observed.load.failures == []
