"""Tools that tests of promises stand on."""
