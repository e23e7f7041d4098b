"""Models for other places than Python: C code, ONNX graphs, tuning files."""
