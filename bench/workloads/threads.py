"""Four threads that call, and now and then wait for a lock that they share."""

import threading

SIZE, WARM = 220_000, 100


class Account:
    def __init__(self, lock):
        self._lock = lock
        self.balance = 0

    def add(self, amount):
        self.balance += self.fee(amount)

    def fee(self, amount):
        return amount - rounded(amount)

    def settle(self, accounts):
        with self._lock:
            accounts["all"] = accounts.get("all", 0) + self.balance
            self.balance = 0


def rounded(amount):
    return half(amount) // 2


def half(amount):
    return amount // 2


def work(account, accounts, size):
    for number in range(size):
        account.add(number)
        if number % 256 == 0:
            account.settle(accounts)
    account.settle(accounts)


def run(size):
    accounts, lock = {}, threading.Lock()
    workers = [
        threading.Thread(target=work, args=(Account(lock), accounts, size))
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return accounts["all"]
