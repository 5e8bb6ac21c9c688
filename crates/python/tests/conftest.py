"""What each test's branch begins with."""

import pytest


@pytest.fixture(scope="session")
def frond_fixtures(frond_base):
    frond_base["fixtures"].insert_many({"_id": number} for number in range(1000))
