# SPDX-License-Identifier: GPL-2.0-or-later
"""The house rules of CONTRIBUTING.md that a machine can check. Each yields findings as "file:line: fault (remedy)"."""
import concurrent.futures
import os
import pathlib
import re
import subprocess

import elf

SPDX = "SPDX-License-Identifier: GPL-2.0-or-later"
# What is recorded or generated stands as it is, unless it is a program.
DATA = re.compile(r"tests/(data|fuzz/corpus|golden/[^/]+)/")
# How the comment begins that says what a file is for.
C, PYTHON, SHELL, NONE = r"/\* ?\S", r'"""\S', r"# \S", ""
PURPOSE = {".c": C, ".h": C, ".inc": C, ".css": C, ".map": C, ".js": r"// \S", ".py": PYTHON, ".sh": SHELL,
           ".build": NONE, ".yml": NONE, ".in": NONE}


class Tree:
    """The files of a repository: those that git has, and new ones that it does not ignore."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        # Whoever owns the directory: root may check what a user has cloned.
        listed = subprocess.run(
            ["git", "-c", f"safe.directory={self.root}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=self.root, check=True, capture_output=True, text=True).stdout
        self.files = sorted({name for name in listed.split("\0") if name and (self.root / name).is_file()})

    def lines(self, name):
        return (self.root / name).read_text(errors="replace").splitlines()

    def first_line(self, name):
        with open(self.root / name, "rb") as file:
            return file.readline(200).decode(errors="replace").rstrip("\n")

    def c_files(self):
        return [name for name in self.files if name.startswith(("src/", "tests/")) and name.endswith((".c", ".h"))]

    def interpreter(self, name):
        """PYTHON or SHELL, if it is a script."""
        line = self.first_line(name)
        return None if not line.startswith("#!") else PYTHON if "python" in line else SHELL

    def shell_scripts(self):
        return [name for name in self.files if name.endswith(".sh") or self.interpreter(name) == SHELL]


def run(command, **options):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", **options)


def formatting(tree):
    """clang-format, by .clang-format."""
    names = tree.c_files()
    pieces = [names[i:i + 50] for i in range(0, len(names), 50)]
    check = lambda piece: run(["clang-format", "--dry-run", "--Werror", *piece], cwd=tree.root).stderr
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for said in pool.map(check, pieces):
            for place in re.findall(r"(?m)^(\S+:\d+):\d+: error: code should be clang-formatted", said):
                yield f"{place}: not as .clang-format says (run clang-format -i)"


def layers_of(tree):
    """{directory of src: its height}, as ARCHITECTURE.md draws it below "## Layers", and the number of that line."""
    lines = tree.lines("ARCHITECTURE.md")
    begin = lines.index("## Layers") if "## Layers" in lines else len(lines)
    for number, line in enumerate(lines[begin:], begin + 1):
        if "◀" in line:
            return {name: height for height, layer in enumerate(line.split("◀")) for name in layer.split()}, number
    return {}, begin + 1


def layering(tree):
    """A lower layer never includes a higher one."""
    layers, drawn = layers_of(tree)
    sources = {name: name.split("/")[1] for name in tree.files
               if re.match(r"src/\w+/", name) and name.endswith((".c", ".h", ".inc"))}
    for directory in sorted({*sources.values()} - layers.keys()):
        yield f"ARCHITECTURE.md:{drawn}: src/{directory} is in no layer (add it to the line with ◀)"
    for directory in sorted(layers.keys() - {*sources.values()}):
        yield f"ARCHITECTURE.md:{drawn}: there is no src/{directory} (remove it from the line with ◀)"
    for name, directory in sources.items():
        for number, line in enumerate(tree.lines(name), 1):
            included = re.match(r'\s*#\s*include\s+"(\w+)/', line)
            if included and layers.get(included[1], 0) > layers.get(directory, len(layers)):
                yield (f"{name}:{number}: {directory} includes {included[1]}, which is above it in ARCHITECTURE.md "
                       f"(move what is needed down, or pass it in)")


def lifetimes(tree):
    """The text of quote() lives as long as the full expression: nothing may point to it afterwards."""
    for name in tree.c_files():
        text = "\n".join(tree.lines(name))
        for found in re.finditer(r"[^=!<>]=[^=;{}]*?\bquote\([^;{}]*\)\.text\s*;", text):
            yield (f"{name}:{text.count(chr(10), 0, found.end()) + 1}: a pointer outlives the text of quote() "
                   f"(keep the struct quote in a variable)")


def heads(tree):
    """License and purpose at the head of every file that somebody wrote."""
    for name in tree.files:
        script = tree.interpreter(name)
        purpose = script or PURPOSE.get(pathlib.PurePath(name).suffix, NONE if name == "meson_options.txt" else None)
        if purpose is None or not script and DATA.match(name):
            continue
        at = 1 if script else 0
        license, said = (tree.lines(name) + ["", "", ""])[at:at + 2]
        if SPDX not in license:
            yield f"{name}:{at + 1}: no license (begin with {SPDX})"
        elif not re.match(purpose, said):
            yield f"{name}:{at + 2}: no purpose (say in a comment what the file is for)"


def shell(tree):
    """shellcheck, without any finding."""
    names = tree.shell_scripts()
    if not names:
        return
    for line in run(["shellcheck", "--format=gcc", *names], cwd=tree.root).stdout.splitlines():
        yield f"{line} (or disable it there, with the reason)"


def manual(pages):
    """groff, with all of its warnings, as man(1) calls it for a terminal."""
    for page in pages:
        said = run(["groff", "-ww", "-z", "-t", "-man", "-Tutf8", "-Kutf8", page])
        for line in (said.stderr + said.stdout).splitlines():
            yield f"{page.name}: {line} (mend the texts of the options, or docs/man)"


def dead_functions(build):
    """Global functions in the objects of src that no program and no plugin reaches. Those of tests do not count."""
    objects = [elf.Object(path) for path in sorted((build / "src").rglob("*.o"))]
    if not objects:
        yield f"{build}/src: no objects (build it first)"
    roots = {"main"}
    for module in (build / "src").rglob("*.so"):
        # What Slurm calls in a plugin.
        said = run(["nm", "--dynamic", "--defined-only", "--format=posix", module]).stdout
        roots.update(line.split()[0] for line in said.splitlines())
    for name, it in sorted(elf.unreached(objects, roots).items()):
        # The C library and sanitizers call those with names of theirs.
        if name.startswith("__"):
            continue
        # A cached object may have been compiled in another directory.
        place = re.search(rf"(?m)^{name} .*\t.*?\b(src/\S+)$", run(["nm", "--line-numbers", "--format=posix", it.path]).stdout)
        yield f"{place[1] if place else it.path}: no program calls {name} (delete it, or make it static or part of the tests)"
