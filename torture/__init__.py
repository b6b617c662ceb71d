"""Attacks on wiseale: kills, failing disks, damaged and hostile files, many writers; ``make torture`` runs them."""
