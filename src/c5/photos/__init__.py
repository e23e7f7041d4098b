"""A photographer's files: finding, cataloguing, balancing, and handing the result to other programs."""
