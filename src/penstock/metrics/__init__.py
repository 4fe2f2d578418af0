"""Every metric of the processes, defined once: name, kind, labels, unit and what it means.

The processes give values to these definitions. The documentation, the dashboard and the alert rules
are made from them (`tools/documents`), so that none can name a metric that does not exist.
"""

from penstock.metrics.definition import Kind, Metric, Process, Sample

__all__ = ["Kind", "Metric", "Process", "Sample"]
