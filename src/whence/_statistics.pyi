from typing import NamedTuple

class Statistics(NamedTuple):
    stacks: int
    stacks_cap: int
    stacks_truncated: int
    stacks_bytes: int
    codes: int
    codes_dead: int
    codes_lost: int
    codes_bytes: int
    walk: str
    walk_reason: str | None
    native_hits: int
    native_misses: int
    native_truncated: int
    native_unsupported: int
    modules: int

def statistics() -> Statistics: ...
