"""Which features of two convex bodies of one environment meet, as rows of candidates in `touch.scratch`.

A row is (holder, kind of A's element, kind of B's, A's three points, B's three points, direction): what `convex.py` computes
contacts from. Holder 1: a face of B holds the normal; -1: one of A; 2: neither, two elements meet; 0: there is no contact.
Behind it are its gap and its place in the world, by which the few that hold the area of contact are chosen.
"""

from .....compiler.kernel import inlined, set_lane, sweep
from .scalars import dot3, sub3

FOUND, ROW, MOST = 2860, 28, 50  # candidates: a row of geometry, its gap, place in the plane
# a turn of one radian counts as 10 mm; candidates nearer than a micrometre are one
TURN, TWICE = 1e-4, 1e-12
NOTHING = (0.0,) * 9


@sweep
def put_candidate(frame, count, codes, a, b, n, measure):
    """One more candidate: codes (holder, kinds), points, direction, gap and place in the plane of a face; how many there are."""
    touch = frame.touch
    if count >= MOST:
        return count
    at = FOUND + ROW * count
    for j in range(3):
        touch.scratch[at + j] = codes[j]
        touch.scratch[at + 21 + j] = n[j]
        touch.scratch[at + 24 + j] = measure[j]
    for j in range(9):
        touch.scratch[at + 3 + j] = a[j]
        touch.scratch[at + 12 + j] = b[j]
    return count + 1


@sweep
def swap_candidates(frame, i, j):
    touch = frame.touch
    if i != j:
        for k in range(ROW):
            x = touch.scratch[FOUND + ROW * i + k]
            touch.scratch[FOUND + ROW * i + k] = touch.scratch[FOUND + ROW * j + k]
            touch.scratch[FOUND + ROW * j + k] = x


@inlined
def place_at(frame, k):
    """Where candidate k is, in the world."""
    at, scratch = FOUND + ROW * k + 25, frame.touch.scratch
    return scratch[at], scratch[at + 1], scratch[at + 2]


@inlined
def direction_at(frame, k):
    at, scratch = FOUND + ROW * k + 21, frame.touch.scratch
    return scratch[at], scratch[at + 1], scratch[at + 2]


@sweep
def put_measure(frame, k, gap, place):
    at, scratch = FOUND + ROW * k + 24, frame.touch.scratch
    scratch[at] = gap
    for j in range(3):
        scratch[at + 1 + j] = place[j]


@sweep
def worth(frame, k, start, chosen):
    """How much a candidate adds to those chosen from `start` on: its depth, then its distance from all of them, in place and a
    little in direction."""
    if chosen == 0:
        return -frame.touch.scratch[FOUND + ROW * k + 24]
    least = 1e300
    for j in range(start, start + chosen):
        way, turn = sub3(place_at(frame, k), place_at(frame, j)), sub3(direction_at(frame, k), direction_at(frame, j))
        least = min(least, dot3(way, way) + TURN * dot3(turn, turn))
    return least


@sweep
def spread(frame, start, count, most):
    """The candidates from `start` on that hold the area of contact, first, and none twice; how many there are then in all."""
    for chosen in range(min(most, count - start)):
        best, found = -1e300, start + chosen
        for k in range(start + chosen, count):
            here = worth(frame, k, start, chosen)
            if here > best:
                best, found = here, k
        if chosen > 0 and best < TWICE:
            return start + chosen
        swap_candidates(frame, start + chosen, found)
    return min(count, start + most)


@sweep
def write_candidates(frame, count, first, most, lane):
    """The rows of one environment, from row `first` of the geometry on; those that it does not have are empty."""
    for k in range(most):
        set_lane(
            frame.touch.geometry, first + k, lane, candidate_row(frame, FOUND + ROW * k, 1.0 if k < count else 0.0)
        )


@sweep
def candidate_row(frame, k, holds):
    """The numbers of a row from place k of the scratch on."""
    s = frame.touch.scratch
    return (
        s[k] * holds, s[k + 1], s[k + 2], s[k + 3], s[k + 4], s[k + 5], s[k + 6], s[k + 7], s[k + 8], s[k + 9], s[k + 10],
        s[k + 11], s[k + 12], s[k + 13], s[k + 14], s[k + 15], s[k + 16], s[k + 17], s[k + 18], s[k + 19], s[k + 20],
        s[k + 21], s[k + 22], s[k + 23],
    )  # fmt: skip
