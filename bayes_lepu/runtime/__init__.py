"""Compiled code, interrupts, whole files and words about long work."""
