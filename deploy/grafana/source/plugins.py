"""Who takes the time and who fails: plugins of messages, interceptors of tool calls, and the extensions behind them."""

from .model import RED, YELLOW, Query, Row, bars, dashboard, lines, quantile, steps

PLUGIN = 'plugin=~"$plugin"'
INTERCEPTOR = 'interceptor=~"$interceptor"'

DASHBOARD = dashboard(
    "portcullis-plugins",
    "Portcullis / Plugins and interceptors",
    "Which plugin or interceptor takes the time, which fails, which blocks.",
    Row("Plugins"),
    lines(
        "Time of a plugin, p95",
        Query(quantile(0.95, "portcullis_plugin_duration_seconds", "plugin", matching=PLUGIN), "{{plugin}}"),
        shows="Time within which 95 of 100 runs end. Built-in families share one pass, and each shows the time of all.",
        normal="built-in ones below a millisecond for short texts; those that call somebody up to their time-out.",
        act="one that calls somebody: look there. All built-in ones: texts grew, or the processor is full.",
        runbook="portcullislatencyburnfast",
        unit="s",
        logarithmic=True,
    ),
    lines(
        "Runs of plugins",
        Query(f"sum by (plugin) (rate(portcullis_plugin_duration_seconds_count{{@, {PLUGIN}}}[$__rate_interval]))", "{{plugin}}"),
        shows="Requests a second that the plugin looked at.",
        normal="all required plugins run for each request.",
        act="one that runs less than the others is off in some policy, or asked for by name only.",
        unit="ops",
    ),
    lines(
        "Not judged, for each decision",
        Query(
            f"sum by (plugin) (rate(portcullis_unjudged_total{{@, {PLUGIN}}}[10m]))"
            ' / on () group_left () (sum(rate(portcullis_requests_total{@, code="OK"}[10m])) > 0)',
            "{{plugin}}",
        ),
        shows="Checks of a plugin or interceptor that did not run to their end, for each decision, over ten minutes.",
        normal="0; `media`, which stands for what nobody can look into, as many as there are media.",
        act="its fail mode decides: closed blocks, ask asks, open lets pass.",
        runbook="portcullisunjudgedrate",
        unit="percentunit",
        thresholds=steps((0.05, RED)),
    ),
    lines(
        "Not judged, by reason",
        Query(f"sum by (reason) (rate(portcullis_unjudged_total{{@, {PLUGIN}}}[$__rate_interval]))", "{{reason}}"),
        shows="Checks a second that did not run to their end, by reason.",
        normal="nothing but unsupported_content.",
        act="timeout, unavailable: who is called is slow or away. bad_answer: it was changed. limit: large or deep content.",
        runbook="portcullisunjudgedrate",
        unit="ops",
        stacked=True,
    ),
    lines(
        "Failing open",
        Query(f"sum by (plugin) (rate(portcullis_fail_open_total{{@, {PLUGIN}}}[$__rate_interval]))", "{{plugin}}"),
        shows="Checks a second that could not judge and were let pass; interceptors are among them.",
        normal="nothing.",
        act="that check does not protect anybody at the moment.",
        runbook="portcullisfailopen",
        unit="ops",
        thresholds=steps((0.001, RED)),
    ),
    lines(
        "Share of the time",
        Query(
            f"sum by (plugin) (rate(portcullis_plugin_duration_seconds_sum{{@, {PLUGIN}}}[$__rate_interval]))", "{{plugin}}"
        ),
        shows="Seconds that runs of the plugin take in each second: how many of them are under way on average.",
        normal="built-in ones far below the number of cores.",
        act="one that calls somebody and grows: whoever it calls gets slower.",
        runbook="portcullissaturated",
        unit="none",
    ),
    Row("Interceptors"),
    lines(
        "Outcomes",
        Query(
            f"sum by (outcome) (rate(portcullis_interceptor_runs_total{{@, {INTERCEPTOR}}}[$__rate_interval]))", "{{outcome}}"
        ),
        shows="Runs of interceptors a second, by what came of them; in shadow, by what would have come of them.",
        normal="mostly passed.",
        act="error or timeout: see which interceptor below.",
        runbook="portcullisinterceptorfailing",
        unit="ops",
        colours={"blocked": RED, "asked": "blue", "error": "orange", "timeout": YELLOW, "passed": "green"},
        stacked=True,
    ),
    lines(
        "Runs by hook",
        Query(f"sum by (hook) (rate(portcullis_interceptor_runs_total{{@, {INTERCEPTOR}}}[$__rate_interval]))", "{{hook}}"),
        shows="Runs of interceptors a second, by the hook on which they stand.",
        normal="a steady mixture.",
        act="a hook that falls to nothing: agents no longer ask there.",
        unit="ops",
        stacked=True,
    ),
    lines(
        "Failing interceptors",
        Query(
            f'sum by (interceptor) (rate(portcullis_interceptor_runs_total{{@, {INTERCEPTOR}, outcome=~"error|timeout"}}[10m]))'
            f' / (sum by (interceptor) (rate(portcullis_interceptor_runs_total{{@, {INTERCEPTOR}, outcome!="skipped"}}[10m])) > 0)',
            "{{interceptor}}",
        ),
        shows="Share of runs that ended in an error or a time-out, over ten minutes. `api` stands for all added by API.",
        normal="nothing.",
        act="the extension or webhook behind it is away, slow, or answers what is not allowed.",
        runbook="portcullisinterceptorfailing",
        unit="percentunit",
        thresholds=steps((0.1, RED)),
    ),
    lines(
        "Time of an interceptor, p95",
        Query(
            quantile(0.95, "portcullis_interceptor_duration_seconds", "interceptor", matching=INTERCEPTOR), "{{interceptor}}"
        ),
        shows="Time within which 95 of 100 runs end.",
        normal="built-in ones below a millisecond; extensions and webhooks what the network takes, at most their time-out.",
        act="look at the extension; its time-out bounds what agents wait.",
        runbook="portcullislatencyburnfast",
        unit="s",
        logarithmic=True,
    ),
    bars(
        "Who blocks",
        Query(
            f'topk(15, sum by (interceptor) (increase(portcullis_interceptor_runs_total{{@, {INTERCEPTOR}, outcome="blocked"}}[$__range])))',
            "{{interceptor}}",
            is_instant=True,
        ),
        shows="Calls blocked over the chosen time, by interceptor.",
        normal="the guards of commands and paths first.",
        act="one that is new here: look at its calls in the audit log.",
        runbook="portcullisblockspike",
        thresholds=steps(),
    ),
    bars(
        "Who asks",
        Query(
            f'topk(15, sum by (interceptor) (increase(portcullis_interceptor_runs_total{{@, {INTERCEPTOR}, outcome="asked"}}[$__range])))',
            "{{interceptor}}",
            is_instant=True,
        ),
        shows="Calls that a person had to approve over the chosen time, by interceptor.",
        normal="few.",
        act="people who are asked often stop reading: decide those cases in the policy.",
        runbook="portcullisblockspike",
        thresholds=steps(),
    ),
    filters={
        "plugin": ("portcullis_plugin_duration_seconds_count", "plugin"),
        "interceptor": ("portcullis_interceptor_duration_seconds_count", "interceptor"),
    },
)
