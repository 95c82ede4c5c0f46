"""Alembic: upgrades and downgrades, and migrations that it writes itself from what it finds in the database."""

import sqlalchemy as sa
from alembic.autogenerate import compare_metadata, produce_migrations
from alembic.migration import MigrationContext
from alembic.operations import Operations, ops

checks = 0


def check(actual, expected):
    global checks
    checks += 1
    assert actual == expected, f"{actual!r} is not {expected!r}"


def first():
    metadata = sa.MetaData()
    sa.Table("author", metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("name", sa.String(40), nullable=False))
    sa.Table("book", metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("title", sa.Text),
             sa.Column("author_id", sa.ForeignKey("author.id", name="book_author_fk")), sa.Index("book_title", "title"))
    return metadata


def second():
    metadata = sa.MetaData()
    sa.Table("author", metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("name", sa.String(80), nullable=False, server_default="nobody"),
             sa.Column("born", sa.Date), sa.UniqueConstraint("name", name="author_name_key"))
    sa.Table("book", metadata, sa.Column("id", sa.BigInteger, primary_key=True), sa.Column("title", sa.Text, nullable=False),
             sa.Column("author_id", sa.ForeignKey("author.id", name="book_author_fk", ondelete="CASCADE")),
             sa.Column("price", sa.Numeric(8, 2)), sa.CheckConstraint("price > 0", name="price_check"), sa.Index("book_author", "author_id", "title"))
    sa.Table("tag", metadata, sa.Column("id", sa.Uuid, primary_key=True), sa.Column("kind", sa.Enum("a", "b", name="tag_kind")))
    return metadata


def migrate(engine, metadata):
    """Does what the difference asks for; returns how many steps that were."""
    with engine.begin() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        script = produce_migrations(context, metadata)
        operations = Operations(context)
        steps = 0

        def run(op):
            nonlocal steps
            if isinstance(op, ops.OpContainer):
                [run(inner) for inner in op.ops]
            else:
                steps += 1
                operations.invoke(op)
        run(script.upgrade_ops)
        return steps


def differences(engine, metadata):
    with engine.connect() as connection:
        return compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True}), metadata)


def main():
    engine = sa.create_engine("postgresql+psycopg://")
    with engine.begin() as connection:
        connection.execute(sa.text("drop table if exists tag, book, author, alembic_version; drop type if exists tag_kind"))
    check(migrate(engine, first()) > 0, True)
    check(differences(engine, first()), [])
    with engine.begin() as connection:
        connection.execute(sa.text("insert into author values (1, 'a'); insert into book values (1, 'b', 1)"))
    check(migrate(engine, second()) >= 8, True)
    check(differences(engine, second()), [])
    with engine.begin() as connection:
        check(connection.execute(sa.text("select a.name, a.born, b.title, b.price from author a join book b on b.author_id = a.id")).all(), [("a", None, "b", None)])
        check(connection.execute(sa.text("select count(*) from pg_constraint where conname = 'author_name_key'")).scalar(), 1)
    # Downgrade: types become narrower, columns and tables are dropped.
    check(migrate(engine, first()) > 0, True)
    check(differences(engine, first()), [])
    with engine.begin() as connection:
        context = MigrationContext.configure(connection)
        context._ensure_version_table()
        connection.execute(sa.text("insert into alembic_version values ('one')"))
        check(context.get_current_heads(), ("one",))
    with engine.begin() as connection:
        connection.execute(sa.text("drop table book, author, alembic_version; drop type if exists tag_kind"))
    import alembic
    print(f"Alembic {alembic.__version__}: {checks} checks")


main()
