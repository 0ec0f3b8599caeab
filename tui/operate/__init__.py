"""Puts the parts to work for both front ends: one snapshot, one launch."""
