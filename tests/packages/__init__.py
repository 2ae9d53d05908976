"""Test suites of other people's packages, run with and without a recording."""
