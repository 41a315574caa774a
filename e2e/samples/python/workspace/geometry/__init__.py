"""Shapes and what they cover."""
