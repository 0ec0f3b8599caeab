"""Words for people: width-safe cells, units, times, translations, reports."""
