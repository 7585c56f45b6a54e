"""Results → tables, pictures and one page, for people."""
