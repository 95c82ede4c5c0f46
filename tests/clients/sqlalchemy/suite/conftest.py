"""SQLAlchemy's test plugin, for the suite that it gives to authors of dialects."""

import pytest

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.dialects.postgresql import provision  # noqa: E402
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402,F401,F403

# The suite does not use these extensions.
provision._extensions.clear()
