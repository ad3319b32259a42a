# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of the table that every benchmark prints (tests/bench/bench.c)."""

verdicts = {"ok": 0, "MISSED": 0}


def digits(value):
    """Three, and all of those before the point."""
    return f"{value:.{0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2}f}"


def _print(name, measured, unit, reference, ratio, goal, verdict):
    print(f"{name:<44} {measured:>10} {unit:<6} {reference:>10} {ratio:>7}  {goal:<14} {verdict}", flush=True)


def head():
    _print("benchmark", "measured", "unit", "reference", "ratio", "goal", "verdict")


def row(name, measured, unit, at_most=None, reference=None):
    verdict = "-"
    if at_most is not None:
        verdict = "ok" if measured <= at_most else "MISSED"
        verdicts[verdict] += 1
    _print(name, digits(measured), unit, digits(reference) if reference else "-",
           digits(measured / reference) if reference else "-", f"<= {at_most:g}" if at_most is not None else "-", verdict)


def foot():
    print(f"{verdicts['ok']} goals met, {verdicts['MISSED']} missed")
