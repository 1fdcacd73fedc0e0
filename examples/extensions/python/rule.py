"""The rules of the examples: which pages may an agent fetch, and which names must it not speak of?

Unlisted hosts are blocked, hosts of the intranet need a person's word, and plain HTTP becomes HTTPS. Names of projects
that are not public are found in messages. Replace this file by your own rules; the servers beside it stay as they are.
"""

import json
import re
from urllib.parse import urlsplit

ALLOWED_HOSTS = {"docs.python.org", "example.com", "www.example.com"}
INTRANET = ".corp.example"

CATEGORY = "confidential"
SECRET_NAMES = re.compile(r"\bproject (?:nightingale|osprey)\b", re.IGNORECASE)

ALLOW, ASK, BLOCK = "DECISION_ALLOW", "DECISION_ASK", "DECISION_BLOCK"


def judge(hook: str, tool_name: str, args_json: str) -> dict:
    """The answer in the JSON form of InterceptResponse. What is left out changes nothing."""
    if hook != "HOOK_TOOL_BEFORE" or tool_name != "web_fetch":
        return {"decision": ALLOW}
    # An argument may be missing or of any type: whatever cannot be judged is blocked, not passed.
    try:
        args = json.loads(args_json)
        text = str(args["url"])
        url = urlsplit(text)
        host = (url.hostname or "").rstrip(".")
    except (ValueError, KeyError, TypeError, AttributeError):
        return {"decision": BLOCK, "reason": "the call has no url that can be read"}
    # Programs disagree about where the host of such a URL is.
    if any(c in "\\@" or c <= " " for c in text):
        return {"decision": BLOCK, "reason": "the url holds a user, a backslash or a blank"}
    if url.scheme not in ("http", "https"):
        return {"decision": BLOCK, "reason": "only http and https pages may be fetched"}
    if host.endswith(INTRANET):
        return {"decision": ASK, "reason": f"{host} is a host of the intranet"}
    if host not in ALLOWED_HOSTS:
        return {"decision": BLOCK, "reason": f"{host or 'this host'} is not on the list of allowed hosts"}
    if url.scheme == "http":
        args["url"] = url._replace(scheme="https").geturl()
        return {"decision": ALLOW, "argsJson": json.dumps(args), "reason": "http became https"}
    return {"decision": ALLOW}


def names_in(text: str) -> list[tuple[int, int]]:
    """Where names that are not public stand, in characters."""
    return [match.span() for match in SECRET_NAMES.finditer(text)]
