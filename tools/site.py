"""MkDocs hook: pages that live elsewhere in the repository, and formulas without a script.

The catalogue (``models/``), the notebooks and the changelog become pages where they are, so that
there is one copy of each. Formulas become MathML, which browsers draw by themselves.
"""

import contextlib
import io
import re
from html import unescape
from importlib import import_module
from pathlib import Path
from typing import Any

import nbformat
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
FORMULA = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.DOTALL)
PUBLIC = re.compile(r"^\[\[public names of ([\w.]+)\]\]$", re.MULTILINE)
HELP = "[[help of the commands]]"
# Links that hold in a clone, and where the pages they name stand on the site.
ELSEWHERE = {
    re.compile(r"\]\(((?:\.\./)*)\.\./notebooks/(\w+)\.ipynb"): r"](\1notebooks/\2.md",
    re.compile(r"\]\(((?:\.\./)*)\.\./models/"): r"](\1models/",
}
MAX_HTML = 20_000  # characters of one output; longer ones are shown as text


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the catalogue, the notebooks, the changelog and the help of the commands."""
    for path in sorted((ROOT / "models").rglob("*")):
        if path.is_file():
            uri = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, uri, abs_src_path=str(path)))
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        uri = f"notebooks/{path.stem}.md"
        files.append(File.generated(config, uri, content=notebook_page(path)))
    changelog = str(ROOT / "CHANGELOG.md")
    files.append(File.generated(config, "changelog.md", abs_src_path=changelog))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put in what pages ask for: the help of the commands, the public names of a package."""
    for link, on_site in ELSEWHERE.items():
        markdown = link.sub(on_site, markdown)
    markdown = PUBLIC.sub(lambda match: public_names(match[1]), markdown)
    return re.sub(re.escape(HELP), lambda _: command_help(), markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Formulas of `pymdownx.arithmatex` as MathML."""
    return FORMULA.sub(lambda match: formula(match[2], block=match[1] == "div"), html)


def formula(latex: str, *, block: bool) -> str:
    r"""MathML of ``\(...\)`` or ``\[...\]``."""
    inner = re.sub(r"^\s*\\[\[(]|\\[\])]\s*$", "", unescape(latex)).strip()
    return convert(inner, display="block" if block else "inline")


def notebook_page(path: Path) -> str:
    """A stored notebook as Markdown, with the outputs it was stored with."""
    parts = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source.replace(".ipynb)", ".md)"))
        elif cell.cell_type == "code":
            parts.append(f"```python\n{cell.source}\n```")
            parts += [show(output) for output in cell.outputs]
    return "\n\n".join(parts)


def show(output: Any) -> str:
    """One output of a cell."""
    if output.output_type == "stream":
        return f"```text\n{output.text.rstrip()}\n```"
    data = output.get("data", {})
    if "image/png" in data:
        return f'<img alt="figure" src="data:image/png;base64,{data["image/png"].strip()}">'
    if "text/markdown" in data:
        return str(data["text/markdown"])
    if len(data.get("text/html", "")) in range(1, MAX_HTML):
        lines = (line.strip() for line in data["text/html"].splitlines())
        return f"<div>{''.join(lines)}</div>"
    return f"```text\n{data.get('text/plain', '').rstrip()}\n```"


def public_names(package: str) -> str:
    """A directive for every name a package exports."""
    names = import_module(package).__all__
    return "\n\n".join(f"::: {package}.{name}" for name in names)


def command_help() -> str:
    """What ``bayes-lepu COMMAND --help`` prints, for all commands."""
    from bayes_lepu.cli.commands import COMMANDS, build_parser

    def page(*argv: str) -> str:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
            build_parser().parse_args([*argv, "--help"])
        return f"## bayes-lepu {' '.join(argv)}".rstrip() + f"\n\n```text\n{out.getvalue()}```\n"

    return "\n".join([page(), *(page(name) for name in COMMANDS)])
