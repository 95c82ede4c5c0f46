"""An application of the project, without migrations: its tables are made by the schema editor."""
