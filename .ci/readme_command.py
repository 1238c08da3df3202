"""Print a command of the README's quick start: ``main`` or ``tests``."""

import re
import sys
from pathlib import Path

text = Path(__file__).parent.parent.joinpath("README.md").read_text(encoding="utf-8")
section = re.split(r"(?m)^#+ ", re.split(r"(?im)^#+ *quick start.*$", text)[1])[0]
commands = re.findall(r"```\w*\n(.*?)\n```", section, re.S)
print(commands[["main", "tests"].index(sys.argv[1])])
