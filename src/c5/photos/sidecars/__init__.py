"""White balances handed to other software, one module per program or format.

Every writer takes the bytes of the existing file, or None, and returns bytes: nothing here opens or changes a file.
What is not about the white balance stays as it was, and writing the same balance again changes nothing. Each module of
a sidecar has `path_beside`, `encode` and its inverse, `read_illuminant`, and is listed in
`c5.photos.outputs`.
"""
