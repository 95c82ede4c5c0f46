"""psycopg2: simple queries only; named cursors, execute_values, COPY, composites, isolation levels, encodings, notices."""

import io
import os

import psycopg2
import psycopg2.errors
import psycopg2.extensions as extensions
import psycopg2.extras as extras

checks = 0


def check(actual, expected):
    global checks
    checks += 1
    assert actual == expected, f"{actual!r} is not {expected!r}"


def fails(error, run, *arguments):
    global checks
    checks += 1
    try:
        run(*arguments)
    except error as raised:
        return raised
    raise AssertionError(f"no {error.__name__}")


def main():
    c = psycopg2.connect("")
    cursor = c.cursor()
    cursor.execute("drop table if exists item; create table item (id int primary key, name text, tags text[], doc jsonb)")
    extras.execute_values(cursor, "insert into item values %s", [(i, f"n{i}", ["a", str(i)], extras.Json({"i": i})) for i in range(500)])
    c.commit()
    cursor.execute("select name, tags, doc from item where id = any(%s) order by id", ([3, 4],))
    check(cursor.fetchall(), [("n3", ["a", "3"], {"i": 3}), ("n4", ["a", "4"], {"i": 4})])
    with c.cursor("named") as named:
        named.itersize = 40
        named.execute("select id from item where id > %s order by id", (99,))
        check(sum(1 for _ in named), 400)
    c.rollback()
    cursor.copy_expert("copy item (id, name) from stdin with csv", io.StringIO('1000,"x,y"\n1001,\n'))
    out = io.StringIO()
    cursor.copy_expert("copy (select id, name from item where id >= 1000 order by id) to stdout with csv header", out)
    check(out.getvalue(), 'id,name\n1000,"x,y"\n1001,\n')
    c.rollback()

    for statement, error in [("selec 1", psycopg2.errors.SyntaxError), ("select * from nowhere", psycopg2.errors.UndefinedTable),
                             ("select 1/0", psycopg2.errors.DivisionByZero)]:
        fails(error, cursor.execute, statement)
        fails(psycopg2.errors.InFailedSqlTransaction, cursor.execute, "select 1")
        c.rollback()
    raised = fails(psycopg2.errors.UniqueViolation, cursor.execute, "insert into item (id) values (1)")
    check((raised.diag.table_name, raised.diag.constraint_name), ("item", "item_pkey"))
    c.rollback()

    cursor.execute("create type spot as (x int, name text)")
    extras.register_composite("spot", cursor)
    cursor.execute("select row(1, 'a')::spot, array[row(2, null)::spot]")
    one, many = cursor.fetchone()
    check((one.x, one.name, many[0].x), (1, "a", 2))
    c.rollback()

    for level, name in [(extensions.ISOLATION_LEVEL_READ_COMMITTED, "read committed"), (extensions.ISOLATION_LEVEL_REPEATABLE_READ, "repeatable read"),
                        (extensions.ISOLATION_LEVEL_SERIALIZABLE, "serializable"), (extensions.ISOLATION_LEVEL_READ_UNCOMMITTED, "read uncommitted")]:
        c.set_session(isolation_level=level)
        cursor.execute("show transaction_isolation")
        check(cursor.fetchone()[0], name)
        c.rollback()
    c.set_session(isolation_level="DEFAULT", readonly=True)
    fails(psycopg2.errors.ReadOnlySqlTransaction, cursor.execute, "delete from item")
    c.rollback()
    c.set_session(readonly=False)
    cursor.execute("drop table if exists nowhere")
    check("does not exist" in c.notices[-1], True)
    c.commit()
    named = psycopg2.connect("", cursor_factory=extras.RealDictCursor)
    with named, named.cursor() as rows:
        rows.execute("select id, name from item where id = 5")
        check(dict(rows.fetchone()), {"id": 5, "name": "n5"})
    named.close()
    cursor.execute("drop table item")
    c.commit()
    print(f"psycopg2 {psycopg2.__version__.split()[0]}: {checks} checks")


main()
