"""What everything is: frozen types that cross every border of the program, and nothing else.

Only the standard library is imported here, because the job keeper, which must outlive an upgrade of
the package, depends on these types. Units: bytes, seconds, watts, degrees Celsius, fractions 0-1;
stored times are epoch seconds; the ``start`` of a process is in clock ticks since boot.
"""
