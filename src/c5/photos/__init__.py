"""A photographer's files: finding, cataloging, balancing, and handing the result to other programs."""
