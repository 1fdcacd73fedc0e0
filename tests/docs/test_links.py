"""Links between pages, to files and to headings lead somewhere; figures that are repeated are those that were measured."""

import re

import pytest
from pages import PAGES, ROOT, anchors, without_blocks

# In text, not in code: `[x](y)` in backticks is no link.
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def links(page):
    text = re.sub(r"`[^`\n]*`", "``", without_blocks(page.read_text()))
    return [(target, text.count("\n", 0, match.start()) + 1) for match in LINK.finditer(text) for target in [match[1]]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    lost = []
    for target, line in links(page):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        if not found.exists() or not found.is_relative_to(ROOT):
            lost.append(f"line {line}: {target}: no such file")
        elif anchor and found.suffix == ".md" and anchor not in anchors(found):
            lost.append(f"line {line}: {target}: no such heading")
    assert not lost, "\n".join(lost)


def test_every_page_is_reached_from_the_readme():
    seen, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in seen or not page.exists():
            continue
        seen.add(page)
        todo += [(page.parent / target.partition("#")[0]).resolve() for target, _ in links(page) if ".md" in target and ":" not in target]
    missing = [str(page.relative_to(ROOT)) for page in PAGES if page not in seen]
    assert not missing


def test_the_readme_is_one_screen():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 85


@pytest.mark.parametrize("name", ["SECURITY_MODEL.md"])
def test_figures_are_those_that_were_measured(name):
    measured = (ROOT / "docs/ACCURACY.md").read_text()
    figures = re.findall(r"\d+\.\d+ %", (ROOT / "docs" / name).read_text())
    assert figures and [figure for figure in figures if figure not in measured] == []


def test_numbered_quick_starts_have_six_commands_at_most():
    for page in PAGES:
        text = without_blocks(page.read_text())
        for heading, section in re.findall(r"^(#+ .*)\n(.*?)(?=^#|\Z)", text, re.M | re.S):
            numbers = [int(number) for number in re.findall(r"^(\d+)\. ", section, re.M)]
            if "Quickstart" in page.name or page.name.startswith("QUICKSTART") or page.name == "README.md":
                assert len(numbers) <= 6, f"{page.name}: {heading}"
