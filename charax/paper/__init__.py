"""One module per table, figure or claim of the paper, built from the rooms above."""
