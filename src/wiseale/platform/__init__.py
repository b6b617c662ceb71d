"""Everything that differs between Linux, macOS and Windows: cores, memory, folders, locks, signals, atomic files."""
