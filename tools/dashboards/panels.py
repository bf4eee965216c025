"""Dashboards as rows of panels, what is wrong with one, and the JSON that Grafana (10 and later) reads it from.

In a query {@} stands for the dashboard's own selector, also before further matchers ({@, slot="0"}), and [@] for the
interval that Grafana takes for rates.
"""

import dataclasses
import typing

Json = dict[str, typing.Any]

TIMESERIES, STAT, TABLE, HEATMAP, BARGAUGE = "timeseries", "stat", "table", "heatmap", "bargauge"
HEIGHTS = {STAT: 4, TABLE: 10}  # in Grafana's grid; of all others:
HEIGHT = 8
COLUMNS = 24  # of that grid
SCHEMA = 38  # of Grafana 10.0
# What Grafana calls them: plain numbers, large ones, shares, seconds, bytes, and rates of bytes and of anything.
UNITS = {"none", "short", "percentunit", "s", "bytes", "Bps", "cps", "dateTimeFromNow"}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclasses.dataclass(frozen=True)
class Panel:
    kind: str
    title: str
    unit: str
    description: str
    queries: dict[str, str]  # by legend; of a table, by column
    width: int = 8
    stack: bool = False  # areas that add up
    points: bool = False  # of what happens now and then
    most: float | None = None  # of the axis, or of bars
    instant: bool = False  # only what is now; bars and tables always are
    show_name: bool = False  # of a number: its legend in its place
    steps: dict[float | None, str] = dataclasses.field(default_factory=dict)  # colour from a value on; None: below all
    # Of a table:
    labels: dict[str, str] = dataclasses.field(default_factory=dict)  # their column, in order; all others are left out
    units: dict[str, str] = dataclasses.field(default_factory=dict)  # of columns, where not `unit`
    hidden: tuple[str, ...] = ()  # columns of queries that only bring labels


@dataclasses.dataclass(frozen=True)
class Row:
    title: str
    panels: list[Panel]


@dataclasses.dataclass(frozen=True)
class Annotation:
    """What happened, as lines across all panels."""
    title: str
    text: str
    colour: str
    query: str


@dataclasses.dataclass(frozen=True)
class Variable:
    name: str
    title: str
    query: str  # label_values(...)
    many: bool = False  # several, or all


@dataclasses.dataclass(frozen=True)
class Dashboard:
    uid: str  # also the name of the file
    title: str
    description: str
    selector: str  # what {@} stands for
    variables: list[Variable]
    rows: list[Row]
    annotations: list[Annotation] = dataclasses.field(default_factory=list)

    def panels(self) -> list[Panel]:
        return [panel for row in self.rows for panel in row.panels]


def faults_of(dashboard: Dashboard) -> list[str]:
    faults = []
    titles: set[str] = set()
    for panel in dashboard.panels():
        where = f"{dashboard.uid}: {panel.title}"
        if panel.title in titles:
            faults.append(f"{where}: two panels of this title")
        titles.add(panel.title)
        if not panel.description.endswith("."):
            faults.append(f"{where}: say what it shows, in a sentence")
        if not panel.queries or not all(panel.queries) or not all(panel.queries.values()):
            faults.append(f"{where}: every query needs a legend")
        faults += [f"{where}: Grafana has no unit {unit}" for unit in {panel.unit, *panel.units.values()} - UNITS]
    for row in dashboard.rows:
        if sum(panel.width for panel in row.panels) % COLUMNS:
            faults.append(f"{dashboard.uid}: {row.title}: the panels' widths are no multiple of {COLUMNS}")
    names = ["datasource"] + [variable.name for variable in dashboard.variables]
    if names != ["datasource", "namespace", "job"]:
        faults.append(f"{dashboard.uid}: the variables are namespace and job")
    return faults


def expand(query: str, selector: str) -> str:
    return query.replace("[@]", "[$__rate_interval]").replace("@", selector)


def target(panel: Panel, number: int, legend: str, query: str, selector: str) -> Json:
    instant = panel.instant or panel.kind in (TABLE, BARGAUGE)
    formats = {TABLE: "table", HEATMAP: "heatmap"}
    return {
        "refId": chr(ord("A") + number),
        "datasource": SOURCE,
        "editorMode": "code",
        "expr": expand(query, selector),
        "legendFormat": legend,
        "format": formats.get(panel.kind, "time_series"),
        "instant": instant,
        "range": not instant,
    }


def field_defaults(panel: Panel) -> Json:
    steps = panel.steps or {None: "green"}
    defaults: Json = {
        "unit": panel.unit,
        "color": {"mode": "thresholds" if panel.steps or panel.kind == STAT else "palette-classic"},
        "thresholds": {"mode": "absolute", "steps": [{"value": value, "color": colour} for value, colour in steps.items()]},
    }
    if panel.most is not None:
        defaults |= {"min": 0, "max": panel.most}
    if panel.kind == TIMESERIES:
        defaults["custom"] = {
            "drawStyle": "points" if panel.points else "line",
            "lineWidth": 1,
            "pointSize": 7,
            "fillOpacity": 60 if panel.stack else 5,
            "showPoints": "always" if panel.points else "never",
            "spanNulls": False,
            "stacking": {"mode": "normal" if panel.stack else "none", "group": "A"},
        }
    return defaults


def options(panel: Panel) -> Json:
    reduce = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    if panel.kind == TIMESERIES:
        legend = {"displayMode": "table", "placement": "bottom", "showLegend": True, "calcs": ["lastNotNull", "max"]}
        return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
    if panel.kind == STAT:
        return {"reduceOptions": reduce, "colorMode": "value" if panel.steps else "none",
                "graphMode": "none" if panel.instant else "area", "justifyMode": "auto", "orientation": "auto",
                "textMode": "name" if panel.show_name else "auto"}
    if panel.kind == BARGAUGE:
        return {"reduceOptions": reduce, "displayMode": "basic", "orientation": "horizontal", "showUnfilled": True,
                "valueMode": "color"}
    if panel.kind == HEATMAP:
        return {"calculate": False, "cellGap": 1, "rowsFrame": {"layout": "auto"}, "legend": {"show": True},
                "color": {"mode": "scheme", "scheme": "Oranges", "scale": "exponential", "exponent": 0.5, "steps": 64,
                          "fill": "dark-orange", "reverse": False},
                "filterValues": {"le": 1e-9},
                "tooltip": {"mode": "single", "show": True, "yHistogram": True},
                "yAxis": {"axisPlacement": "left", "reverse": False, "unit": panel.unit}}
    return {"showHeader": True, "cellHeight": "sm"}


def table_columns(panel: Panel) -> Json:
    """One line for each set of labels, with the values of all queries."""
    letters = [chr(ord("A") + number) for number in range(len(panel.queries))]
    values = [f"Value #{letter}" for letter in letters] if len(letters) > 1 else ["Value"]  # as Grafana calls them
    names = panel.labels | {value: column for value, column in zip(values, panel.queries) if column not in panel.hidden}
    left_out = ["Time"] + [value for value, column in zip(values, panel.queries) if column in panel.hidden]
    organize = {"excludeByName": dict.fromkeys(left_out, True), "renameByName": names,
                "indexByName": {name: index for index, name in enumerate(names)}}
    return {"transformations": [{"id": "merge", "options": {}}, {"id": "organize", "options": organize}]}


def panel_json(panel: Panel, selector: str) -> Json:
    overrides = [{"matcher": {"id": "byName", "options": column}, "properties": [{"id": "unit", "value": unit}]}
                 for column, unit in panel.units.items()]
    targets = [target(panel, number, legend, query, selector)
               for number, (legend, query) in enumerate(panel.queries.items())]
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": SOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": field_defaults(panel), "overrides": overrides},
        "options": options(panel),
    } | (table_columns(panel) if panel.kind == TABLE else {})


def place(rows: list[Row], selector: str) -> list[Json]:
    """All rows one below the other; a row's panels from left to right, in as many lines as they need."""
    placed: list[Json] = []
    y = 0
    for row in rows:
        placed.append({"type": "row", "title": row.title, "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1}})
        y += 1
        x = height = 0
        for panel in row.panels:
            if x + panel.width > COLUMNS:
                x, y, height = 0, y + height, 0
            grid = {"x": x, "y": y, "w": panel.width, "h": HEIGHTS.get(panel.kind, HEIGHT)}
            placed.append(panel_json(panel, selector) | {"gridPos": grid})
            x += panel.width
            height = max(height, grid["h"])
        y += height
    return [{"id": number} | panel for number, panel in enumerate(placed, 1)]


def variable_json(variable: Variable) -> Json:
    return {"name": variable.name, "label": variable.title, "type": "query", "datasource": SOURCE,
            "query": {"query": variable.query, "refId": variable.name}, "definition": variable.query,
            "refresh": 2, "sort": 1, "multi": variable.many, "includeAll": variable.many,
            "allValue": ".*" if variable.many else None,
            "current": {"text": "All", "value": "$__all"} if variable.many else {}, "hide": 0, "options": [], "regex": ""}


def annotation_json(annotation: Annotation, selector: str) -> Json:
    query = expand(annotation.query, selector)
    return {"name": annotation.title, "datasource": SOURCE, "enable": True, "hide": False, "iconColor": annotation.colour,
            "expr": query, "step": "30s", "titleFormat": annotation.title, "textFormat": annotation.text,
            "target": {"refId": annotation.title, "expr": query, "interval": "30s", "legendFormat": annotation.text}}


def dashboard_json(dashboard: Dashboard) -> Json:
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {},
              "hide": 0, "includeAll": False, "multi": False, "options": [], "refresh": 1, "regex": ""}
    link = {"type": "dashboards", "title": "Adamant", "tags": ["adamant"], "asDropdown": True, "includeVars": True,
            "keepTime": True, "targetBlank": False, "icon": "external link", "tooltip": "", "url": ""}
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.description,
        "tags": ["adamant"],
        "schemaVersion": SCHEMA,
        "editable": True,
        "graphTooltip": 1,  # one cross-hair for all panels
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "30s",
        "timezone": "",
        "links": [link],
        "annotations": {"list": [annotation_json(each, dashboard.selector) for each in dashboard.annotations]},
        "templating": {"list": [source] + [variable_json(variable) for variable in dashboard.variables]},
        "panels": place(dashboard.rows, dashboard.selector),
    }
