"""One keeper per job, identities, the stop ladder, job folders."""
