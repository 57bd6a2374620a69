"""The data that are known by name: one module per data set, with its reader, scaling and augmentation."""
