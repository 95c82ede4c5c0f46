"""The models of the project."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower


class Author(models.Model):
    name = models.CharField(max_length=80, unique=True)
    born = models.DateField(null=True)


class Book(models.Model):
    author = models.ForeignKey(Author, models.CASCADE, related_name="books")
    title = models.CharField(max_length=120, db_index=True)
    price = models.DecimalField(max_digits=8, decimal_places=2, default=0)
    data = models.JSONField(default=dict)
    added = models.DateTimeField(auto_now_add=True)
    tags = models.ManyToManyField("Tag")

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(price__gte=0), name="price_positive"),
                       models.UniqueConstraint(fields=["author", "title"], name="one_title", deferrable=models.Deferrable.DEFERRED)]
        indexes = [models.Index(Lower("title"), name="lower_title"), models.Index(fields=["price"], condition=Q(price__gt=10), name="dear")]


class Tag(models.Model):
    name = models.SlugField(primary_key=True)
