"""Two giant gradient steps of the first layer: which directions they find, with fresh and with reused batches."""
