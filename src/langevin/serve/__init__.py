"""Posteriors over HTTP, and the page on which people play with them."""
