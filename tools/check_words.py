#!/usr/bin/env python3
"""Checks that no retired word is in the code, its comments, the protocol, the tests, the tools or the pages:
docs/glossary.md says what is said instead. Words count as parts of identifiers: `heir` is in `HasHeirs` and `next_heir`, and
not in `their`. Texts between quotes in code are free: some are names of stored fields, or what users read.

usage: tools/check_words.py [ROOT]      exit code 1 if there are faults
"""

import pathlib
import re
import sys

RETIRED = {  # word, in snake_case: what is said instead
    "bucket_record": "bucket placement, configuration",
    "bucket_version": "configuration version",
    "cluster_map": "placement view",
    "dealer": "scheduler, dispatcher",
    "handover": "transfer",
    "heir": "successor",
    "heirs": "successors",
    "held_actions": "deferred actions",
    "hold_pushes": "pause pushes",
    "hold_time": "pause time",
    "job_bodies": "reconcilers",
    "job_body": "reconciler",
    "lead_out": "shutdown sequence",
    "leaver": "departing",
    "leavers": "departing",
    "member_id": "slot id",
    "parcel": "message batch",
    "parcels": "message batches",
    "patience": "timeout",
    "push_hold": "push pause",
    "pushes_held": "pushes paused",
    "release_hold": "resume",
    "release_pushes": "resume pushes",
    "roster": "process table",
    "run_dir": "run folder",
    "snapshot_request": "take snapshot",
    "takeover": "promotion",
    "takeovers": "promotions",
}

# What stays, as field numbers, stored keys and what users read stay: (word, path, reason).
EXCEPTIONS = [
    ("heir", r"proto/adamant/v1/control\.proto", "a field of stored and sent configurations, and of the CRD"),
    ("leaver", r"proto/adamant/v1/control\.proto", "likewise"),
    ("heir", r"services/common/protocol/buckets\.h|docs/cli\.md", "says so; what `adamant status` prints"),
    ("leaver", r"services/common/protocol/buckets\.h|docs/cli\.md", "likewise"),
    ("heir", r"services/common/codec/buckets\.cc|tests/unit/services/common/codec/.*", "the codec of that field"),
    ("leaver", r"services/common/codec/buckets\.cc|tests/unit/services/common/codec/.*", "likewise"),
    ("heir", r"operator/cli/console/.*|tests/unit/operator/cli/console/.*", "`adamant status --output json`"),
    ("leaver", r"operator/cli/console/.*|tests/unit/operator/cli/console/.*", "likewise"),
    ("heir", r"tests/unit/operator/kube/schema/.*", "the CRD's field"),
    ("run_dir", r"docs/cli\.md", "a key of `--output json`"),
    ("lead_out", r"tests/unit/services/data_server/rpc/data_source_test\.cc", "links that lead out of a claim"),
    ("heir", r"tests/(bench|processes|integration)/.*", "tests that speak the protocol as others see it"),
]

FOLDERS = ("services", "operator", "proto", "tests", "tools", "docs")
SUFFIXES = {".h", ".cc", ".proto", ".md"}
SUFFIXES_OF_TOOLS = {"", ".py", ".txt"}
# What was, under the names of then; and this.
HISTORY = {"docs/glossary.md", "docs/bench/history.md", "docs/design/0004-structure.md", "tools/check_words.py",
           "tools/check_words_test.py"}
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake(identifier: str) -> str:
    return "_" + BOUNDARY.sub("_", identifier).lower().strip("_") + "_"


def excepted(word: str, path: str) -> bool:
    return any(word == each and re.fullmatch(pattern, path) for each, pattern, _ in EXCEPTIONS)


def faults_of(path: str, text: str) -> list[str]:
    """Retired words of a file, each line and word once."""
    faults = []
    for number, line in enumerate(text.split("\n"), 1):
        if not path.endswith(".md"):
            line = LITERAL.sub("", line)
        parts = [snake(identifier) for identifier in IDENTIFIER.findall(line)]
        for word, instead in RETIRED.items():
            if any(f"_{word}_" in part for part in parts) and not excepted(word, path):
                faults.append(f"{path}:{number}: \"{word}\" is retired: {instead} (docs/glossary.md)")
    return faults


def check(root: pathlib.Path) -> tuple[int, list[str]]:
    faults = []
    count = 0
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            path = file.relative_to(root).as_posix()
            read = SUFFIXES_OF_TOOLS if folder == "tools" else SUFFIXES
            if file.is_file() and file.suffix in read and path not in HISTORY:
                count += 1
                faults += faults_of(path, file.read_text(encoding="utf-8"))
                stem = snake(file.stem)
                faults += [f"{path}: its name has \"{word}\", which is retired: {instead}" for word, instead in RETIRED.items()
                           if f"_{word}_" in stem and not excepted(word, path)]
    return count, faults


def main() -> int:
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    count, faults = check(root)
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"words: {count} files, {len(RETIRED)} retired words, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
