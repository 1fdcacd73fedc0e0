"""The cases of this folder as records, one JSON object a line on standard output.

Without an argument those for `portcullis train`: the TOML files but for those whose name ends in `held_out`, which measure
what unseen wordings can expect, and then the folder `written` but for what is held out there. Of these, and of `products`,
`summoned` and `hailed`, the tier is `wording`: they teach what words weigh, and nothing about concepts. Of what programs show
it is `material`. With `written` or `held_out` as its argument, for `portcullis eval`, those of the folder `written`: texts of
whose wordings no rule was made. The order is that of the file names and of the texts in them, so that the same cases give the
same records.
"""

import json
import sys
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

FOLDER = Path(__file__).parent
KINDS = {
    "attacks_user": ("attack", "user"),
    "attacks_tool": ("attack", "tool_result"),
    "benign_user": ("benign", "user"),
    "benign_tool": ("benign", "tool_result"),
}
TIERS = {"attack": "explicit", "benign": "overdefense"}
# Files that teach words alone: their rules know nearly all of their attacks, and concepts would learn those by heart.
FOR_WORDS = {"products", "summoned", "hailed"}
# Files that came after the weights. Those trained on them as well found less of what is held out.
AFTER_THE_MODEL = {"agent_reads", "oblique", "user_asks"}
# What programs show: harmless, plenty and easy, so that no bound is told from it.
MATERIAL = {
    *("machine", "machine_second", "placeholders"),
    *(f"system_languages_{nth}" for nth in ("first", "second", "third", "fourth", "fifth", "sixth")),
}

Record = dict[str, str]


def ruled() -> Iterator[Record]:
    """Those that rules were written beside."""
    for path in sorted(FOLDER.glob("*.toml")):
        if path.stem.endswith("held_out"):
            continue
        cases = tomllib.loads(path.read_text(encoding="utf-8"))
        for kind, (label, surface) in KINDS.items():
            for number, text in enumerate(cases[kind]):
                yield {
                    "id": f"{path.stem}-{kind}-{number}",
                    "text": text,
                    "label": label,
                    "category": "own",
                    "surface": surface,
                    "tier": "wording" if path.stem in FOR_WORDS else TIERS[label],
                    "source": f"own_{path.stem}",
                    "license": "as this repository",
                }


def written(is_held_out: bool, tier: str = "") -> Iterator[Record]:
    """Those of the folder `written`, of one tier if that is given. Lines end in `\\n` alone: some texts hold other line
    separators."""
    for path in sorted((FOLDER / "written").glob("*.jsonl")):
        if path.stem.startswith("held_out") != is_held_out:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").rstrip("\n").split("\n")):
            case = json.loads(line)
            yield {
                "id": f"written-{path.stem}-{number}",
                "text": case["text"],
                "label": case["label"],
                "category": case["lang"],
                "surface": case["surface"],
                "tier": "material" if tier and path.stem in MATERIAL else tier or TIERS[case["label"]],
                "source": f"written_{path.stem}",
                "license": "as this repository",
            }


def is_later(record: Record) -> bool:
    """Whether it stands in a file that the model has not read."""
    return record["source"].removeprefix("written_") in AFTER_THE_MODEL


def main() -> None:
    match sys.argv[1:]:
        case []:
            read = (one for one in written(is_held_out=False, tier="wording") if not is_later(one))
            records = chain(ruled(), read)
        case ["written" | "held_out" as name]:
            records = written(name == "held_out")
        case _:
            sys.exit("records.py takes no argument, `written` or `held_out`")
    for record in records:
        sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
