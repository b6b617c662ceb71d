"""Image files: folders and zip archives, decoded, cropped and resized."""
