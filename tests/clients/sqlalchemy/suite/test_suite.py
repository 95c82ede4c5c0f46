"""SQLAlchemy's suite for dialects, whole."""

from sqlalchemy.testing.suite import *  # noqa: F401,F403
