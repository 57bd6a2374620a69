"""One training over many processes, measured: see `__main__`."""
