-- Nothing to do: where one transaction writes at a time, messages are dealt with in the order of their partition.

INSERT INTO handstamp_migrations (version, name) VALUES (2, 'ahead');
