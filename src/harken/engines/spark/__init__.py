"""The lake engine: relations as Delta tables, evaluated by Spark."""
