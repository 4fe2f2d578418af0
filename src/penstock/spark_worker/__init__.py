"""What runs inside Spark's Python workers: records straight from Kafka into Parquet files.

    driver (pipeline) --StraightWork--> Spark --> worker: read the ranges, write the files
                     <--WrittenPart---        <--

Imported by every worker that Spark starts, so it stays light: no Spark, no lake, no settings.
What was written counts only when the driver commits it.
"""
