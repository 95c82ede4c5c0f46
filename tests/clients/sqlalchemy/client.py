"""SQLAlchemy: a project of the ORM: models, migrations of metadata and their reflection, relationships, locking, streams, retries."""

import datetime
import decimal
import enum
import sys
import threading

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql as pg

checks = 0


def check(actual, expected):
    global checks
    checks += 1
    assert actual == expected, f"{actual!r} is not {expected!r}"


class Base(orm.DeclarativeBase):
    pass


class Kind(enum.Enum):
    small = 1
    large = 2


class Customer(Base):
    __tablename__ = "customer"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(80), unique=True)
    kind: orm.Mapped[Kind] = orm.mapped_column(default=Kind.small)
    data: orm.Mapped[dict] = orm.mapped_column(pg.JSONB, default=dict)
    tags: orm.Mapped[list] = orm.mapped_column(pg.ARRAY(sa.Text), default=list)
    since: orm.Mapped[datetime.datetime] = orm.mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
    orders: orm.Mapped[list["Order"]] = orm.relationship(back_populates="customer", cascade="all, delete-orphan")
    version: orm.Mapped[int] = orm.mapped_column(default=1)
    __mapper_args__ = {"version_id_col": version}


class Order(Base):
    __tablename__ = "order"
    id: orm.Mapped[int] = orm.mapped_column(sa.BigInteger, sa.Identity(), primary_key=True)
    customer_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("customer.id", ondelete="CASCADE"), index=True)
    amount: orm.Mapped[decimal.Decimal] = orm.mapped_column(sa.Numeric(10, 2))
    customer: orm.Mapped[Customer] = orm.relationship(back_populates="orders")
    __table_args__ = (sa.CheckConstraint("amount >= 0", name="amount_is_positive"),)


def main(driver):
    engine = sa.create_engine(f"postgresql+{driver}://", pool_size=4, pool_reset_on_return="rollback")
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    Base.metadata.create_all(engine)
    inspector = sa.inspect(engine)
    check(sorted(inspector.get_table_names()), ["customer", "order"])
    check(inspector.get_foreign_keys("order")[0]["options"], {"ondelete": "CASCADE"})
    check([found["name"] for found in inspector.get_check_constraints("order")], ["amount_is_positive"])
    check([found["name"] for found in inspector.get_indexes("order")], ["ix_order_customer_id"])
    check(inspector.get_enums()[0]["labels"], ["small", "large"])
    reflected = sa.MetaData()
    reflected.reflect(engine)
    check(sorted(reflected.tables), ["customer", "order"])
    check(repr(reflected.tables["order"].c.amount.type), "NUMERIC(precision=10, scale=2)")

    with orm.Session(engine) as session, session.begin():
        session.add_all([Customer(name=f"c{i}", tags=["x", str(i)], data={"i": i},
                                  orders=[Order(amount=decimal.Decimal(j)) for j in range(3)]) for i in range(50)])
    with orm.Session(engine) as session:
        loaded = session.scalars(sa.select(Customer).options(orm.selectinload(Customer.orders)).order_by(Customer.id).limit(5)).all()
        check([len(customer.orders) for customer in loaded], [3] * 5)
        joined = session.execute(sa.select(Customer.name, sa.func.sum(Order.amount)).join(Order).group_by(Customer.name).order_by(Customer.name).limit(2)).all()
        check([tuple(row) for row in joined], [("c0", 3), ("c1", 3)])
        check(session.scalar(sa.select(sa.func.count()).where(Customer.data["i"].as_integer() > 40)), 9)
        check(session.scalar(sa.select(sa.func.count()).select_from(Customer).where(Customer.tags.contains(["7"]))), 1)
        first = session.get(Customer, loaded[0].id, with_for_update=True)
        first.kind = Kind.large
        first.orders.pop()
        session.commit()
        check(session.scalar(sa.select(sa.func.count()).select_from(Order)), 149)
        with session.begin_nested() as savepoint:
            session.execute(sa.delete(Order))
            savepoint.rollback()
        check(session.scalar(sa.select(sa.func.count()).select_from(Order)), 149)
        try:
            session.add(Customer(name="c0"))
            session.flush()
        except sa.exc.IntegrityError as error:
            session.rollback()
            check("customer_name_key" in str(error), True)
        upsert = pg.insert(Customer).values([{"name": "c0", "version": 1, "kind": Kind.small, "data": {}, "tags": []}])
        upsert = upsert.on_conflict_do_update(index_elements=["name"], set_={"data": {"again": True}}).returning(Customer.data)
        check(session.scalar(upsert), {"again": True})
        session.commit()
        streamed = session.execute(sa.select(Order.id).order_by(Order.id), execution_options={"yield_per": 20})
        check(sum(1 for _ in streamed), 149)
        session.rollback()

    stale = orm.Session(engine)
    old = stale.scalars(sa.select(Customer).where(Customer.name == "c5")).one()
    with orm.Session(engine) as session, session.begin():
        session.scalars(sa.select(Customer).where(Customer.name == "c5")).one().kind = Kind.large
    old.tags = ["stale"]
    try:
        stale.flush()
        check("flushed", "StaleDataError")
    except orm.exc.StaleDataError:
        stale.rollback()
    stale.close()

    def add(session_level):
        for _ in range(5):
            while True:
                try:
                    with orm.Session(engine.execution_options(isolation_level=session_level)) as session, session.begin():
                        one = session.scalars(sa.select(Customer).where(Customer.name == "c9")).one()
                        one.data = {"n": one.data.get("n", 0) + 1}
                    break
                except (sa.exc.OperationalError, orm.exc.StaleDataError):
                    pass
    for level in ("REPEATABLE READ", "SERIALIZABLE"):
        threads = [threading.Thread(target=add, args=(level,)) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    with engine.connect() as connection:
        check(connection.scalar(sa.text("select data ->> 'n' from customer where name = 'c9'")), "40")
    Base.metadata.drop_all(engine)
    check(sa.inspect(engine).get_table_names(), [])
    print(f"SQLAlchemy {sa.__version__} with {driver}: {checks} checks")


main(sys.argv[1])
