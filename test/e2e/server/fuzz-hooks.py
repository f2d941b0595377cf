"""What schemathesis does besides what the document says: it asks about things that exist, and does not wait for work."""

import json
import os
import zlib

import schemathesis

NAMES = json.loads(os.environ["SERVO_FUZZ_NAMES"])


def is_valid(case):
    return case.meta is None or case.meta.generation.mode.name == "POSITIVE"


@schemathesis.hook
def before_call(context, case, kwargs):
    if not is_valid(case):
        return
    for name, value in (case.path_parameters or {}).items():
        known = NAMES.get(name)
        number = zlib.crc32(str(value).encode("utf-8", "surrogatepass"))
        # Three of four: what does not exist must be answered too.
        if known and number % 4 > 0:
            case.path_parameters[name] = known[number % len(known)]
    if isinstance(case.body, dict) and isinstance(case.body.get("wait_ms"), int):
        case.body["wait_ms"] = min(case.body["wait_ms"], 20)
    query = case.query or {}
    # A stream of what happens has no end, and an event of this id may never come.
    if case.path.endswith("/events"):
        case.query = {**query, "follow": "false"}
    elif "wait_for_event_id" in query:
        case.query = {**query, "timeout_ms": 20}
