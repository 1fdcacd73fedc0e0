"""The cases of this folder as records for `portcullis train`, one JSON object a line on standard output.

Left out are files whose name ends in `held_out`, which measure what unseen wordings can expect, and `products`, `summoned`
and `hailed`, which measure rules alone. The order is that of the file names and of the texts in them, so that the same cases
give the same records.
"""

import json
import sys
import tomllib
from pathlib import Path

KINDS = {
    "attacks_user": ("attack", "user", "explicit"),
    "attacks_tool": ("attack", "tool_result", "explicit"),
    "benign_user": ("benign", "user", "overdefense"),
    "benign_tool": ("benign", "tool_result", "overdefense"),
}


def main() -> None:
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        if path.stem.endswith("held_out") or path.stem in {"products", "summoned", "hailed"}:
            continue
        cases = tomllib.loads(path.read_text(encoding="utf-8"))
        for kind, (label, surface, tier) in KINDS.items():
            for number, text in enumerate(cases[kind]):
                record = {
                    "id": f"{path.stem}-{kind}-{number}",
                    "text": text,
                    "label": label,
                    "category": "own",
                    "surface": surface,
                    "tier": tier,
                    "source": f"own_{path.stem}",
                    "license": "as this repository",
                }
                sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
