"""A mail room in objects: many small methods, properties, overriding, comparisons.

Parcels go from desk to desk; a clock hands each desk its turn by due time.
"""

import heapq

SIZE, WARM = 8_000, 30


class Parcel:
    __slots__ = ("number", "stamps", "weight")

    def __init__(self, number, weight):
        self.number = number
        self.weight = weight
        self.stamps = []

    @property
    def heavy(self):
        return self.weight > 6

    def stamp(self, desk):
        self.stamps.append(desk.name)
        return len(self.stamps)


class Turn:
    __slots__ = ("desk", "due", "parcel")

    def __init__(self, due, desk, parcel):
        self.due = due
        self.desk = desk
        self.parcel = parcel

    def __lt__(self, other):
        return (self.due, self.parcel.number) < (other.due, other.parcel.number)


class Clock:
    def __init__(self):
        self.now = 0
        self._turns = []

    def after(self, delay, desk, parcel):
        heapq.heappush(self._turns, Turn(self.now + delay, desk, parcel))

    def next_turn(self):
        turn = heapq.heappop(self._turns)
        self.now = turn.due
        return turn

    def __bool__(self):
        return bool(self._turns)


class Desk:
    delay = 3

    def __init__(self, name, room):
        self.name = name
        self.room = room
        self.handled = 0

    def take(self, parcel):
        parcel.stamp(self)
        self.handled += self.effort(parcel)
        following = self.choose(parcel)
        if following is not None:
            self.room.clock.after(self.wait_for(parcel), following, parcel)

    def effort(self, parcel):
        return 2 if parcel.heavy else 1

    def wait_for(self, parcel):
        return self.delay + self.effort(parcel)

    def choose(self, parcel):
        raise NotImplementedError


class Intake(Desk):
    def choose(self, parcel):
        return self.room.desk("scale" if parcel.weight % 2 else "shelf")


class Scale(Desk):
    delay = 5

    def effort(self, parcel):
        return super().effort(parcel) + parcel.weight // 4

    def choose(self, parcel):
        if parcel.heavy and len(parcel.stamps) < 6:
            parcel.weight -= 1
            return self
        return self.room.desk("shelf")


class Shelf(Desk):
    def choose(self, parcel):
        return self.room.desk("intake" if len(parcel.stamps) < 8 else "door")


class Door(Desk):
    delay = 1

    def choose(self, parcel):
        self.room.leave(parcel)


class Room:
    kinds = {"intake": Intake, "scale": Scale, "shelf": Shelf, "door": Door}  # noqa: RUF012

    def __init__(self):
        self.clock = Clock()
        self.gone = 0
        self._desks = {name: kind(name, self) for name, kind in self.kinds.items()}

    def desk(self, name):
        return self._desks[name]

    def leave(self, parcel):
        self.gone += parcel.weight

    def work(self):
        while self.clock:
            turn = self.clock.next_turn()
            turn.desk.take(turn.parcel)
        return self.gone + sum(desk.handled for desk in self._desks.values())


def run(size):
    room = Room()
    for number in range(size):
        room.clock.after(number % 17, room.desk("intake"), Parcel(number, number % 11))
    return room.work()
