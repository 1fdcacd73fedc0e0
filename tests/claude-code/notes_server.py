"""An MCP server on standard input with one tool, whose result is the variable NOTE."""

import json
import os
import sys

TOOL = {
    "name": "fetch_note",
    "description": "A note.",
    "inputSchema": {"type": "object", "properties": {"fails": {"type": "boolean"}}},
}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    asked = message.get("params", {})
    result = {}
    if message["method"] == "initialize":
        server = {"name": "notes", "version": "1"}
        result = {"protocolVersion": asked["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    elif message["method"] == "tools/list":
        result = {"tools": [TOOL]}
    elif message["method"] == "tools/call":
        note = {"type": "text", "text": os.environ["NOTE"]}
        result = {"content": [note], "isError": asked["arguments"].get("fails", False)}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
