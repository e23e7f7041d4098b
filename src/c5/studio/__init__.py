"""A page of one's own machine on which a shoot is looked at, corrected and written. The work is done by `c5.photos`."""
