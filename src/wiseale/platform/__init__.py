"""What differs between operating systems and machines: cores, memory, folders, locks, atomic files."""
