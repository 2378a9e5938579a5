"""Tells MkDocs the navigation of docs/, and where links out of docs/ lead."""

import re

BOLD_LINK = re.compile(r"^- \*\*\[([^\]]+)\]\(([\w-]+\.md)\)\*\*", re.M)
CHAPTER = re.compile(r"^## (.+)$", re.M)
CONTENTS = re.compile(r"<!-- contents -->\n.*?<!-- /contents -->\n", re.S)
LEAVING = re.compile(r"\]\(\.\./([^)#\s]*)(#[^)\s]*)?\)")
FOLDER = re.compile(r"\]\((examples)/?\)")


def on_config(config):
    """Read the navigation from docs/README.md: its chapters, and the pages in bold."""
    with open(config["docs_dir"] + "/README.md", encoding="utf-8") as f:
        parts = CHAPTER.split(f.read())
    nav = [{"Documents": "README.md"}]
    for title, text in zip(parts[1::2], parts[2::2]):
        pages = [{name: page} for name, page in BOLD_LINK.findall(text)]
        if pages:
            nav.append({title: pages})
    config["nav"] = nav
    return config


def on_page_markdown(markdown, config, **_):
    """Leave out the page's own table of contents, and point links out of docs/ to the repository."""
    markdown = CONTENTS.sub("", markdown)
    repository = config["extra"]["repository"]
    markdown = LEAVING.sub(lambda m: f"]({repository}{m[1]}{m[2] or ''})", markdown)
    return FOLDER.sub(lambda m: f"]({repository}docs/{m[1]})", markdown)
