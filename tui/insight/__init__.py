"""Pure functions over facts: owners, remaining time, trouble, endings. No input or output."""
