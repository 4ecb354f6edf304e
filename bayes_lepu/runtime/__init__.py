"""Compiled code, interrupts and whole files."""
