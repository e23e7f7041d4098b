"""A local web page to view, correct and write a shoot. `c5.photos` does the work."""
