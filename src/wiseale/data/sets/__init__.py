"""The named datasets, one file each (``registry.DATASETS`` lists them), and how their files are fetched."""
