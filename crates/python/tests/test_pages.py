"""The code that docs/python.md shows is run."""

import pathlib
import re

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "python.md"


def test_the_page_about_python(tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 1
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks[0], str(PAGE), "exec"), {})
