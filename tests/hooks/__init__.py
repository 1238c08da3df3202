"""One file per hook, each built on the tests of its kind."""
