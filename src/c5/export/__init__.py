"""Models for use outside Python: C code, ONNX graphs, tuning files."""
