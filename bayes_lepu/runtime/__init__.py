"""Compilation, interrupts and safe writing of files."""
