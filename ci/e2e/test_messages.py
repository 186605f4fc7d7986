"""The table of messages itself: each key is used by a test, and each entry is still printed by some source."""

import ast
import functools
import pathlib
import re
import subprocess
import unittest

import penstock_cli
from messages import MESSAGES

E2E = pathlib.Path(__file__).parent
ENOUGH = 20  # letters in a row that only the source of the message has
LITERALS = re.compile(r'R"(\w*)\((.*?)\)\1"|"((?:\\.|[^"\\\n])*)"', re.DOTALL)


def keys_used():
    """key -> the tests that name it, and the fields that they give."""
    used = {}
    for file in sorted(E2E.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "message":
                used.setdefault(node.args[0].value, []).append((f"{file.name}:{node.lineno}", {word.arg for word in node.keywords}))
    return used


def printed_by_cpp(text):
    """The string literals of a C++ source; those that follow each other without code are one."""
    out, end = [], None
    for found in LITERALS.finditer(text):
        words = found[2] if found[2] is not None else found[3]
        follows = end is not None and not text[end:found.start()].strip()
        out.append(words if follows else "\n" + words)
        end = found.end()
    return "".join(out)


@functools.cache
def printed():
    """All that the sources of the tree may print, fields of the messages as one space."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=penstock_cli.SOURCE, capture_output=True, text=True, check=False)
    files = [penstock_cli.SOURCE / name for name in names.stdout.split("\n")] if names.returncode == 0 else penstock_cli.SOURCE.rglob("*")
    texts = []
    for file in files:
        name = file.relative_to(penstock_cli.SOURCE).as_posix()
        if not file.is_file() or name.startswith(("ci/e2e/", "docs/", "build")) or re.search(r"(_test|_testing|_fuzz)\.\w+$", name):
            continue
        if file.suffix in (".cpp", ".hpp", ".h"):
            texts.append(printed_by_cpp(file.read_text(encoding="utf-8")))
        elif file.suffix in (".py", ".js", ".sh") or (name.startswith("ci/") and not file.suffix) or name.startswith("benchmarks/"):
            texts.append(re.sub(r'["\']\s*f?["\']', "", file.read_text(encoding="utf-8", errors="replace")))
    whole = "\n".join(texts).replace('\\"', '"').replace("\\n", " ").replace("{{", "{").replace("}}", "}")
    return " ".join(re.sub(r"\{[^{}]*\}", " ", whole).split())


def is_printed(entry, texts):
    """Whether the longest part of the entry that some source holds is long enough to be of that message."""
    for piece in re.split(r"\{\w*\}", entry):
        words = piece.split()
        for first in range(len(words)):
            for last in range(len(words), first, -1):
                run = " ".join(words[first:last])
                letters = sum(letter.isalpha() for letter in run)
                if letters < min(ENOUGH, sum(letter.isalpha() for letter in re.sub(r"\{\w*\}", "", entry)) * 0.6):
                    break
                if run in texts:
                    return True
    return False


class Messages(unittest.TestCase):
    def test_each_key_is_used_with_its_fields(self):
        used = keys_used()
        self.assertEqual(sorted(MESSAGES.keys() - used.keys()), [], "no test looks for these")
        for key, places in used.items():
            self.assertIn(key, MESSAGES, places)
            fields = set(re.findall(r"\{(\w+)\}", MESSAGES[key]))
            for place, given in places:
                self.assertEqual(given, fields, f"{place}: {key}")

    def test_each_entry_is_printed_by_a_source(self):
        texts = printed()
        self.assertEqual([key for key, entry in MESSAGES.items() if not is_printed(entry, texts)], [], "no source prints these any more")

    def test_an_entry_that_no_source_prints_is_found(self):
        self.assertFalse(is_printed("the moon is made of {what} and nothing else", printed()))


if __name__ == "__main__":
    penstock_cli.main()
