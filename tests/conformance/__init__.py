"""Scenarios of the agent core with their expected traces, the runner that plays them, and the test that compares."""
