"""White balances handed to other software, one module a program or format.

Every writer takes the bytes of what is there already, or None, and returns bytes: nothing here opens or changes a
file. What is not about the white balance stays as it was, and writing the same balance twice is writing it once. Each
module of a sidecar has `path_beside`, `encode` and its inverse, `read_illuminant`, and is listed in
`c5.photos.outputs`.
"""
