"""psycopg 3: both result formats, pipelines, cursors of the server, COPY, composites and enums, two-phase commit, pools, cancels."""

import datetime
import decimal
import threading

import psycopg
from psycopg import errors, sql
from psycopg.rows import dict_row, namedtuple_row
from psycopg.types.composite import CompositeInfo, register_composite
from psycopg.types.enum import EnumInfo, register_enum
from psycopg.types.json import Jsonb
from psycopg_pool import ConnectionPool

checks = 0


def check(actual, expected):
    global checks
    checks += 1
    assert actual == expected, f"{actual!r} is not {expected!r}"


def fails(error, run, *arguments, **named):
    global checks
    checks += 1
    try:
        run(*arguments, **named)
    except error as raised:
        return raised
    raise AssertionError(f"no {error.__name__}")


def values(c):
    for value in [1, 2**40, 1.5, decimal.Decimal("1.10"), "é", b"\x00\xff", True, datetime.date(2024, 2, 29),
                  datetime.datetime(2024, 2, 29, 1, 2, 3, 4), datetime.timedelta(days=1, seconds=2), [1, 2], None]:
        for binary in (False, True):
            cursor = c.cursor(binary=binary)
            check(cursor.execute("select %s", [value]).fetchone()[0], value)
            check(cursor.execute("select %b" if binary else "select %t", [value]).fetchone()[0], value)
    check(c.execute("select %s::text[]", [["a", None, "b\""]]).fetchone()[0], ["a", None, "b\""])
    check(c.execute("select %s", [Jsonb({"a": [1]})]).fetchone()[0], {"a": [1]})
    now = c.execute("select now()").fetchone()[0]
    check(now.tzinfo is not None, True)


def errors_in_every_state(c):
    for statement in ["selec 1", "select * from nowhere", "select 1 / 0", "select %s::int"]:
        parameters = ["seven"] if "%s" in statement else None
        fails(psycopg.Error, c.execute, statement, parameters)
        check(c.info.transaction_status.name, "INERROR")
        fails(errors.InFailedSqlTransaction, c.execute, "select 1")
        c.rollback()
    with c.transaction():
        fails(errors.DivisionByZero, in_savepoint, c)
        check(c.execute("select 1").fetchone(), (1,))
    raised = fails(errors.UniqueViolation, c.execute, "insert into item values (1, 'a'), (1, 'b')")
    check((raised.diag.schema_name, raised.diag.table_name, raised.diag.constraint_name), ("public", "item", "item_pkey"))
    c.rollback()


def in_savepoint(c):
    with c.transaction():
        c.execute("select 1 / 0")


def pipelines(c):
    with c.pipeline() as pipeline:
        cursors = [c.execute("select %s::int", [i]) for i in range(20)]
        pipeline.sync()
        check([cursor.fetchone()[0] for cursor in cursors], list(range(20)))
    def wrong():
        with c.pipeline():
            c.execute("select 1")
            c.execute("select 1 / 0")
            c.execute("select 2")
    fails(errors.DivisionByZero, wrong)
    c.rollback()
    c.cursor().executemany("insert into item values (%s, %s)", [(i, f"n{i}") for i in range(100)])
    cursor = c.cursor()
    cursor.executemany("insert into item values (%s, %s) returning id", [(i, "r") for i in range(100, 103)], returning=True)
    found = []
    while True:
        found.append(cursor.fetchone()[0])
        if not cursor.nextset():
            break
    check(found, [100, 101, 102])
    c.commit()


def cursors(c):
    with c.cursor("numbers") as cursor:
        cursor.itersize = 10
        cursor.execute("select id from item where id >= %s order by id", [50])
        check(sum(1 for _ in cursor), 53)
    with c.cursor("scrolled", scrollable=True) as cursor:
        cursor.execute("select id from item order by id")
        cursor.scroll(5)
        check(cursor.fetchone(), (5,))
        cursor.scroll(0, mode="absolute")
        check(cursor.fetchmany(2), [(0,), (1,)])
    with c.cursor("held", withhold=True) as cursor:
        cursor.execute("select id from item order by id limit 3")
        c.commit()
        check(cursor.fetchall(), [(0,), (1,), (2,)])
    c.commit()
    check(c.cursor(row_factory=dict_row).execute("select id, name from item where id = 7").fetchone(), {"id": 7, "name": "n7"})
    check(c.cursor(row_factory=namedtuple_row).execute("select id as a from item where id = 7").fetchone().a, 7)
    c.commit()


def copies(c):
    with c.cursor() as cursor:
        with cursor.copy("copy item (id, name) from stdin") as copy:
            for i in range(1000, 1100):
                copy.write_row((i, None if i % 2 else f"x\ty{i}"))
        with cursor.copy("copy item (id, name) from stdin (format binary)") as copy:
            copy.set_types(["int4", "text"])
            for i in range(1100, 1200):
                copy.write_row((i, "binary"))
        with cursor.copy("copy (select id, name from item where id between 1098 and 1101 order by id) to stdout") as copy:
            check(list(copy.rows()), [("1098", "x\ty1098"), ("1099", None), ("1100", "binary"), ("1101", "binary")])
        with cursor.copy("copy (select 1::int4, 'a'::text) to stdout (format binary)") as copy:
            copy.set_types(["int4", "text"])
            check(list(copy.rows()), [(1, "a")])
        def broken():
            with cursor.copy("copy item from stdin") as copy:
                copy.write("oops\tx\n")
        fails(errors.InvalidTextRepresentation, broken)
    c.rollback()


def user_types(c):
    c.execute("create type mood as enum ('sad', 'glad'); create type spot as (x int, name text)")
    info = EnumInfo.fetch(c, "mood")
    register_enum(info, c)
    check(c.execute("select 'glad'::mood").fetchone()[0], info.enum.glad)
    check(c.execute("select %s", [[info.enum.sad]]).fetchone()[0], [info.enum.sad])
    spot = CompositeInfo.fetch(c, "spot")
    register_composite(spot, c)
    for binary in (False, True):
        check(c.execute("select row(1, 'a,b')::spot", binary=binary).fetchone()[0], spot.python_type(1, "a,b"))
    check(c.execute("select %s::spot[]", [[spot.python_type(1, None)]]).fetchone()[0], [spot.python_type(1, None)])
    c.rollback()


def two_phase(c):
    xid = c.xid(1, "client", "psycopg3")
    c.tpc_begin(xid)
    c.execute("insert into item values (5000, 'prepared')")
    c.tpc_prepare()
    with psycopg.connect() as other:
        found = [found for found in other.tpc_recover() if found.gtrid == "client"]
        check(len(found), 1)
        other.tpc_commit(found[0])
    c.close()
    c = psycopg.connect()
    check(c.execute("select name from item where id = 5000").fetchone(), ("prepared",))
    c.close()


def cancels(c):
    timer = threading.Timer(0.2, c.cancel)
    timer.start()
    fails(errors.QueryCanceled, c.execute, "select pg_sleep(60)")
    c.rollback()
    check(c.execute("select 1").fetchone(), (1,))
    c.rollback()


def pools():
    with ConnectionPool(min_size=2, max_size=3, reset=lambda c: (c.execute("discard all"), None)[1],
                        kwargs={"autocommit": True, "options": "-c timezone=Asia/Tokyo"}) as pool:
        def work(i):
            with pool.connection() as c:
                check(c.execute("show timezone").fetchone()[0], "Asia/Tokyo")
                c.execute("set timezone = 'UTC'")
                c.execute("select set_config('application_name', %s, false)", [f"worker {i}"])
        threads = [threading.Thread(target=work, args=(i,)) for i in range(12)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        check(checks > 0, True)


def main():
    with psycopg.connect() as c:
        c.execute("drop table if exists item")
        c.execute("create table item (id int primary key, name text)")
        c.commit()
        for step in (values, errors_in_every_state, pipelines, cursors, copies, user_types, cancels):
            step(c)
            c.rollback()
        two_phase(psycopg.connect())
        pools()
        c.execute(sql.SQL("drop table {}").format(sql.Identifier("item")))
    print(f"psycopg {psycopg.__version__}: {checks} checks")


main()
