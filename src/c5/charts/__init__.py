"""Color charts and gray cards in photographs: where they are, whether they fit, and the light they show."""
