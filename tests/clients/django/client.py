"""Django: migrations of its own applications and of a project's, the ORM, transactions and locks, dumpdata, inspectdb, the test runner."""

import io
import os

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "HOST": os.environ["PGHOST"], "PORT": os.environ["PGPORT"],
                           "USER": "bennu", "NAME": "bennu", "CONN_MAX_AGE": None}},
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "django.contrib.admin", "django.contrib.messages", "shop"],
    USE_TZ=True, DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", SECRET_KEY="x",
    MIGRATION_MODULES={"shop": None}, SILENCED_SYSTEM_CHECKS=[f"admin.E{number}" for number in (403, 408, 409, 410)],
)
django.setup()

from django.core.management import call_command
from shop.models import Author, Book, Tag

from django.db import IntegrityError, connection, models, transaction
from django.db.models import Avg, Count, F, OuterRef, Prefetch, Q, Subquery, Sum, Window
from django.db.models.functions import Coalesce, Rank, TruncMonth
from django.test.runner import DiscoverRunner

checks = 0


def check(actual, expected):
    global checks
    checks += 1
    assert actual == expected, f"{actual!r} is not {expected!r}"


def migrate():
    call_command("migrate", verbosity=0)
    with connection.schema_editor() as editor:
        for model in (Author, Tag, Book):
            editor.create_model(model)
    with connection.schema_editor() as editor:
        field = models.IntegerField(default=3, null=False)
        field.set_attributes_from_name("stars")
        editor.add_field(Book, field)
        wider = models.BigIntegerField(null=True)
        wider.set_attributes_from_name("stars")
        editor.alter_field(Book, field, wider)
        editor.remove_field(Book, wider)
    check({"auth_user", "django_admin_log", "shop_book"} <= set(connection.introspection.table_names()), True)


def queries():
    authors = Author.objects.bulk_create([Author(name=f"a{i}") for i in range(20)])
    Book.objects.bulk_create([Book(author=author, title=f"t{i}", price=i, data={"i": i}) for author in authors for i in range(5)], batch_size=30)
    Tag.objects.bulk_create([Tag(name="x"), Tag(name="y")], ignore_conflicts=True)
    book = Book.objects.get(author__name="a3", title="t4")
    book.tags.add("x", "y")
    check(sorted(tag.name for tag in book.tags.all()), ["x", "y"])
    check(Book.objects.aggregate(Sum("price"), Avg("price"), Count("id")), {"price__sum": 200, "price__avg": 2, "id__count": 100})
    check(Author.objects.annotate(n=Count("books", filter=Q(books__price__gt=2))).filter(n=2).count(), 20)
    newest = Book.objects.filter(author=OuterRef("pk")).order_by("-price")
    check(Author.objects.annotate(top=Subquery(newest.values("title")[:1])).first().top, "t4")
    ranked = Book.objects.annotate(rank=Window(Rank(), partition_by=["author"], order_by=F("price").desc())).filter(rank=1)
    check(ranked.count(), 20)
    check(Book.objects.filter(data__i__gte=3).count(), 40)
    check(Book.objects.annotate(month=TruncMonth("added")).values("month").annotate(n=Count("id")).get()["n"], 100)
    check(len(Author.objects.prefetch_related(Prefetch("books", Book.objects.filter(price__lt=1)))[:3]), 3)
    check(sum(1 for _ in Book.objects.order_by("id").iterator(chunk_size=10)), 100)
    check(Book.objects.filter(title="t1").update(price=F("price") + 10), 20)
    check(Author.objects.update_or_create(name="a1", defaults={"born": "2000-02-29"})[1], False)
    check(Author.objects.filter(Q(name__iexact="A1") | Q(born__year=1999)).values_list(Coalesce("born__year", 0), flat=True)[0], 2000)
    check(Book.objects.filter(title="t0").delete()[0], 20)


def transactions():
    for wrong in (lambda: Author.objects.create(name="a1"), lambda: Book.objects.create(author_id=1, title="n", price=-1)):
        try:
            with transaction.atomic():
                wrong()
            check("created", "IntegrityError")
        except IntegrityError:
            check(Author.objects.count(), 20)
    with transaction.atomic():
        locked = Book.objects.select_for_update(skip_locked=True, of=("self",)).select_related("author").filter(price__gt=3).order_by("id")[:2]
        check(len(locked), 2)
        try:
            with transaction.atomic():
                Author.objects.create(name="a2")
        except IntegrityError:
            pass
        Author.objects.create(name="new")
    # The foreign keys are deferred: a row may be inserted before the row that it references.
    with transaction.atomic():
        Book.objects.create(id=9000, author_id=9000, title="early")
        Author.objects.create(id=9000, name="late")
    check(Author.objects.filter(name__in=["new", "late"]).count(), 2)


def commands():
    from django.contrib.auth.models import User
    User.objects.create_superuser("root", password="secret")
    out = io.StringIO()
    call_command("dumpdata", "shop", "auth.user", stdout=out)
    check("a19" in out.getvalue() and "root" in out.getvalue(), True)
    out = io.StringIO()
    call_command("inspectdb", "shop_book", stdout=out)
    check("class ShopBook" in out.getvalue() and "decimal_places=2" in out.getvalue(), True)
    call_command("sqlsequencereset", "auth", stdout=io.StringIO(), no_color=True)
    call_command("flush", interactive=False, verbosity=0)
    check(Book.objects.count(), 0)


def databases():
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from pg_database where datname like 'test\\_bennu%'")
        return cursor.fetchone()[0]


def runner():
    """Databases of tests, their copies for two processes, and databases that remain for the next run."""
    for options, remaining in [({}, 0), ({"parallel": 2}, 0), ({"keepdb": True}, 1), ({"keepdb": True, "parallel": 2}, 3),
                               ({"keepdb": True, "parallel": 2}, 3), ({"parallel": 2}, 0)]:
        check(DiscoverRunner(verbosity=0, interactive=False, **options).run_tests(["shop"]), 0)
        check(databases(), remaining)


def main():
    with connection.cursor() as cursor:
        cursor.execute("drop schema public cascade; create schema public")
    migrate()
    queries()
    transactions()
    commands()
    runner()
    with connection.cursor() as cursor:
        cursor.execute("drop schema public cascade; create schema public")
    print(f"Django {django.__version__}: {checks} checks")


main()
