"""fleet with parameter servers: tables of a program, a worker's programs, and what workers and servers do."""
