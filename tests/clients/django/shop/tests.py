"""Tests of the project, for Django's test runner."""

from django.db import IntegrityError, connection, transaction
from django.test import TestCase, TransactionTestCase

from shop.models import Author, Book, Tag


class InTransaction(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.author = Author.objects.create(name="a")

    def test_database(self):
        with connection.cursor() as cursor:
            cursor.execute("select current_database()")
            self.assertTrue(cursor.fetchone()[0].startswith("test_bennu"))

    def test_unique(self):
        with self.assertRaises(IntegrityError), transaction.atomic():
            Author.objects.create(name="a")
        self.assertEqual(Author.objects.count(), 1)

    def test_deferred(self):
        with self.assertRaises(IntegrityError), transaction.atomic():
            Book.objects.bulk_create([Book(author=self.author, title="t"), Book(author=self.author, title="t")])
            connection.check_constraints()
        self.assertEqual(Book.objects.count(), 0)


class ChecksAtEnd(TestCase):
    def test_rolled_back(self):
        self.assertEqual(Author.objects.count() + Tag.objects.count(), 0)


class Flushed(TransactionTestCase):
    reset_sequences = True

    def test_first(self):
        self.assertEqual(Author.objects.create(name="first").pk, 1)

    def test_second(self):
        with transaction.atomic():
            self.assertEqual(Author.objects.create(name="second").pk, 1)
        self.assertEqual(Author.objects.count(), 1)


class Restored(TransactionTestCase):
    serialized_rollback = True

    def test_first(self):
        Tag.objects.create(name="x")

    def test_second(self):
        self.assertEqual(Tag.objects.count(), 0)
