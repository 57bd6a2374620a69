"""Files of the user: one module per kind of file, and one dispatch among them (`_dispatch`)."""
