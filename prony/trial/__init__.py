"""One trial: a server under test, warmed up until steady, measured, stopped."""
