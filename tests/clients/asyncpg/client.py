"""asyncpg: values in binary, prepared statements, cursors, COPY, pools, errors in every state of the protocol, cancels, retries."""

import asyncio
import datetime
import decimal
import io
import os
import uuid

import asyncpg

checks = 0


def check(actual, expected):
    global checks
    checks += 1
    assert actual == expected, f"{actual!r} is not {expected!r}"


async def fails(awaitable, error):
    """Waits for an error, for so long as a driver would never wait."""
    global checks
    checks += 1
    try:
        await asyncio.wait_for(awaitable, 20)
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


async def values(c):
    cases = [
        ("int2", 7), ("int4", -5), ("int8", 2**62), ("float8", 1.5), ("numeric", decimal.Decimal("12345678901234567890.0001")),
        ("text", "bennu é"), ("bytea", b"\x00\xff"), ("bool", True), ("uuid", uuid.uuid4()),
        ("date", datetime.date(2024, 2, 29)), ("timestamp", datetime.datetime(2024, 2, 29, 1, 2, 3, 4)),
        ("timestamptz", datetime.datetime(2024, 2, 29, 1, 2, 3, 4, datetime.timezone.utc)), ("time", datetime.time(1, 2, 3)),
        ("interval", datetime.timedelta(days=3, seconds=5)), ("jsonb", '{"a": [1, 2]}'),
        ("int4[]", [1, None, 3]), ("text[]", ["a", "b,c", '"']), ("numeric[]", [decimal.Decimal("1.5")]),
    ]
    for name, value in cases:
        check(await c.fetchval(f"select $1::{name}", value), value)
        check(await c.fetchval(f"select $1::{name}", None), None)


async def user_types(c):
    await c.execute("create type mood as enum ('sad', 'glad'); create type spot as (x int, y int, name text)")
    check(await c.fetchval("select $1::mood", "glad"), "glad")
    check(await c.fetchval("select $1::mood[]", ["sad", "glad"]), ["sad", "glad"])
    check(tuple(await c.fetchval("select $1::spot", (1, 2, "a"))), (1, 2, "a"))
    check(tuple(await c.fetchval("select row(3, 4, null)::spot")), (3, 4, None))
    await c.execute("drop type mood; drop type spot")


async def errors(c):
    await fails(c.fetch("selec 1"), asyncpg.PostgresSyntaxError)
    await fails(c.prepare("select * from nowhere"), asyncpg.UndefinedTableError)
    await fails(c.fetch("select $1::int", "seven"), asyncpg.DataError)
    await fails(c.fetch("select 1 / $1::int", 0), asyncpg.DivisionByZeroError)
    await fails(c.execute("select 1; select 1 / 0; select 2"), asyncpg.DivisionByZeroError)
    await fails(c.fetch("select g / (3 - g) from generate_series(1, 5) g"), asyncpg.DivisionByZeroError)
    prepared = await c.prepare("select 10 / $1::int")
    await fails(prepared.fetchval(0), asyncpg.DivisionByZeroError)
    check(await prepared.fetchval(5), 2)
    async with c.transaction():
        try:
            async with c.transaction():
                await c.fetch("select 1 / 0")
        except asyncpg.DivisionByZeroError:
            pass
        check(await c.fetchval("select 1"), 1)
    try:
        await c.execute("insert into item values (1, 'a'), (1, 'b')")
    except asyncpg.UniqueViolationError as error:
        check((error.schema_name, error.table_name, error.constraint_name), ("public", "item", "item_pkey"))


async def cursors(c):
    async with c.transaction():
        seen = [row["g"] async for row in c.cursor("select g from generate_series($1::int, 250) g", 1, prefetch=50)]
        check(seen, list(range(1, 251)))
        cursor = await c.cursor("select g from generate_series(1, 10) g")
        check([row[0] for row in await cursor.fetch(3)], [1, 2, 3])
        await cursor.forward(2)
        check((await cursor.fetchrow())[0], 6)


async def copies(c):
    rows = [(i, f"n{i}") for i in range(10, 500)]
    check(await c.copy_records_to_table("item", records=rows, columns=["id", "name"]), "COPY 490")
    out = io.BytesIO()
    check(await c.copy_from_query("select id, name from item where id < $1 order by id", 13, output=out, format="csv"), "COPY 3")
    check(out.getvalue(), b"10,n10\n11,n11\n12,n12\n")
    out = io.BytesIO()
    await c.copy_from_table("item", output=out, format="binary")
    check(out.getvalue()[:11], b"PGCOPY\n\xff\r\n\x00")
    source = io.BytesIO(b"1000\tx\n1001\t\\N\n")
    check(await c.copy_to_table("item", source=source, columns=["id", "name"]), "COPY 2")
    await fails(c.copy_to_table("item", source=io.BytesIO(b"1000\tx\n")), asyncpg.UniqueViolationError)
    await fails(c.copy_to_table("item", source=io.BytesIO(b"oops\tx\n")), asyncpg.DataError)
    check(await c.fetchval("select count(*) from item"), 492)


async def cancels(c):
    await fails(c.execute("select pg_sleep(60)", timeout=0.2), asyncio.TimeoutError)
    check(await c.fetchval("select 1"), 1)


async def pools():
    async with asyncpg.create_pool(min_size=2, max_size=4) as pool:
        async def one(i):
            async with pool.acquire() as c:
                await c.execute("set timezone = 'Asia/Tokyo'")
                await c.execute("create temp table if not exists scratch (a int)")
                async with c.transaction():
                    await c.execute("insert into item values ($1, 'pool') on conflict (id) do update set name = 'again'", 2000 + i % 3)
                return await c.fetchval("select count(*) from item where id = $1", 2000 + i % 3)
        check(set(await asyncio.gather(*(one(i) for i in range(30)))), {1})
        async with pool.acquire() as c:
            check(await c.fetchval("show timezone") == "Asia/Tokyo", False)


async def retries():
    """Transfers at REPEATABLE READ and SERIALIZABLE, tried again after 40001: no money is lost."""
    async with asyncpg.create_pool(min_size=4, max_size=4) as pool:
        await pool.execute("create table account (id int primary key, balance int); insert into account select i, 100 from generate_series(0, 3) i")

        async def transfer(i, isolation):
            while True:
                try:
                    async with pool.acquire() as c, c.transaction(isolation=isolation):
                        source, target = i % 4, (i * 7 + 1) % 4
                        balance = await c.fetchval("select balance from account where id = $1", source)
                        await c.execute("update account set balance = $1 where id = $2", balance - 1, source)
                        balance = await c.fetchval("select balance from account where id = $1", target)
                        await c.execute("update account set balance = $1 where id = $2", balance + 1, target)
                        return
                except (asyncpg.SerializationError, asyncpg.DeadlockDetectedError):
                    pass

        for isolation in ("repeatable_read", "serializable"):
            await asyncio.gather(*(transfer(i, isolation) for i in range(24)))
            check(await pool.fetchval("select sum(balance) from account"), 400)
        await pool.execute("drop table account")


async def main():
    c = await asyncpg.connect()
    await c.execute("drop table if exists item, account; create table item (id int primary key, name text)")
    for step in (values, user_types, errors, cursors, copies, cancels):
        await asyncio.wait_for(step(c), 60)
    await asyncio.wait_for(pools(), 60)
    await asyncio.wait_for(retries(), 60)
    await c.execute("drop table item")
    await c.close()
    print(f"asyncpg {asyncpg.__version__}: {checks} checks")


asyncio.run(main())
