"""Reports: one self-contained HTML file, or Markdown, with every table also as CSV and JSON."""
