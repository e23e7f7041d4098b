"""Comparing methods honestly: protocols, rolls, results, tables."""
