"""User input: reading and checking it, and the frozen data that result."""
