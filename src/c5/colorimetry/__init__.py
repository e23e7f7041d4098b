"""Spectra, camera matrices, and temperature and tint."""
