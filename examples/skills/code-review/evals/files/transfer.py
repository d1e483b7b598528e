import sqlite3


def find_account(db: sqlite3.Connection, name: str):
    row = db.execute(f"SELECT id, balance FROM accounts WHERE name = '{name}'").fetchone()
    return row


def transfer(db: sqlite3.Connection, sender: str, receiver: str, amount: float) -> None:
    source = find_account(db, sender)
    if source[1] < amount:
        raise ValueError("not enough money")
    db.execute("UPDATE accounts SET balance = balance - ? WHERE id = ?", (amount, source[0]))
    db.commit()
    target = find_account(db, receiver)
    db.execute("UPDATE accounts SET balance = balance + ? WHERE id = ?", (amount, target[0]))
    db.commit()
