"""Files in and out: images, raw files, and writing whole or not at all."""
