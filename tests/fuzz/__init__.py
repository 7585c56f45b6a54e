"""Damaged and forged files of every folder of ours, before every command that reads them."""
