#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints a jphase recording, the header first, then one line for each record.

usage: decode.py FILE

The recording describes itself: the header's "layout" names each record and its
columns, so that this program needs no table of its own.
"""
import sys

import msgpack


def objects(file):
    """All whole objects; a recording that was cut short ends in a part of one."""
    unpacker = msgpack.Unpacker(file, unicode_errors="replace")
    try:
        yield from unpacker
    except msgpack.OutOfData:
        pass


def text(value):
    """Texts without control characters, all else as Python has it."""
    if isinstance(value, str) and value.isprintable() and " " not in value and value:
        return value
    return repr(value)


def main(path):
    with open(path, "rb") as file:
        stream = objects(file)
        header = next(stream, None)
        if not isinstance(header, dict) or header.get("format") != "jphase":
            sys.exit(f"{path} is not a jphase recording")
        layout = {kind: rest for kind, *rest in header.pop("layout")}
        for key, value in header.items():
            print(f"{key}: {value}")
        calibrations = set()  # processes that show what markers cost, no part of the run
        for kind, *values in stream:
            name, *columns = layout.get(kind, [f"kind {kind}"])
            columns += [f"column {i}" for i in range(len(columns), len(values))]
            record = dict(zip(columns, values))
            if record.get("how") == "calibration":
                calibrations.add(record["process"])
            label = ["(calibration)"] if record.get("process") in calibrations else []
            print(name, *label, *(f"{c}={text(v)}" for c, v in record.items()))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: decode.py FILE")
    try:
        main(sys.argv[1])
    except BrokenPipeError:
        sys.stderr.close()
