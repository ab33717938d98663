"""Compares what the tool says of programs with what numpy says, for the `reference.py` of a folder.

Cases are given by file: the definition, its arguments, a function of these (or the text of a
failure), and the tolerance. The environment variable DAEDAL names the tool, `daedal` otherwise.

    python3 programs/imaging/reference.py             compares, and says which files are out of date
    python3 programs/imaging/reference.py --write     compares, and writes the `;; run` lines
    python3 programs/imaging/reference.py --native    compares compiled code too, with schedules and without
"""

import argparse
import json
import os
import subprocess
import sys

import numpy as np

RUN = ";; run "
WAYS = {"eval": ["eval"], "run": ["run"], "run --schedule default": ["run", "--schedule", "default"]}


def word(argument):
    value = argument.tolist() if isinstance(argument, np.ndarray) else argument
    return json.dumps(value, separators=(",", ":"))


def answer(way, path, name, words):
    """What the tool prints, and whether that is a failure."""
    command, *options = WAYS[way]
    tool = os.environ.get("DAEDAL", "daedal")
    done = subprocess.run([tool, command, str(path), name, *words, *options], capture_output=True, text=True)
    failed = done.returncode != 0
    return (done.stderr if failed else done.stdout).strip(), failed


def complaint(text, failed, arguments, expected, tolerance):
    """What is wrong with an answer, or None."""
    if isinstance(expected, str):
        return None if failed and expected in text else f"no failure with `{expected}`: {text}"
    if failed:
        return text
    want = expected(*arguments)
    got = np.array(json.loads(text)).astype(want.dtype)
    if want.size == got.size == 0:
        return None
    if got.shape != want.shape:
        return f"sizes {got.shape}, not {want.shape}"
    if not np.allclose(got, want, rtol=tolerance, atol=0.0):
        return f"differs from numpy by {np.max(np.abs(got.astype(float) - want)):g}"
    return None


def run_case(path, case, ways, problems):
    """The line of a case; what is wrong goes to `problems`."""
    name, arguments, expected, tolerance = case
    words = [word(a) for a in arguments]
    texts = set()
    for way in ways:
        text, failed = answer(way, path, name, words)
        wrong = complaint(text, failed, arguments, expected, tolerance)
        if wrong:
            problems.append(f"{path.name}: {way} {name} {' '.join(words)}: {wrong}")
        texts.add(f"error {expected}" if failed else text)
    if len(texts) > 1:
        problems.append(f"{path.name}: {name} {' '.join(words)}: not the same in all ways: {texts}")
    return f"{RUN}{name} {' '.join(words)} => {min(texts)}"


def main(folder, cases):
    """The command line of a script that holds the programs of a folder against its cases."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="write the run lines of the files")
    parser.add_argument("--native", action="store_true", help="compare compiled code too")
    parser.add_argument("files", nargs="*", default=list(cases), help="names without .ks; all where there are none")
    options = parser.parse_args()
    ways = list(WAYS) if options.native else ["eval"]
    problems = []
    for file in options.files:
        path = folder / f"{file}.ks"
        lines = [run_case(path, case, ways, problems) for case in cases[file]]
        old = path.read_text().split("\n")
        new = old[:1] + lines + [line for line in old[1:] if not line.startswith(RUN)]
        if options.write:
            path.write_text("\n".join(new))
        elif new != old:
            problems.append(f"{path.name}: its run lines are not those of this script")
    print("\n".join(problems) or "all as numpy has it")
    sys.exit(bool(problems))
