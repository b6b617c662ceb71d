"""Pages people can show: one self-contained HTML file or Markdown, with the tables as CSV and JSON beside it."""
