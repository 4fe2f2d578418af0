"""What runs inside Spark's Python workers: it reads ranges from Kafka and writes Parquet files.

    driver (pipeline) --PassThroughWork--> Spark --> worker: read the ranges, write the files
                     <--WrittenPart------        <--

Every worker that Spark starts imports this package, so it stays light: no Spark, no lake, no
settings. Files count only once the driver has committed them.
"""
