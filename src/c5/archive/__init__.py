"""The white balance of archives of any size, as Parquet: on this machine's cores, or on a cluster."""
