"""How log sizes and offsets become write speeds. Pure: no clock, no thread, no file, no network.

log_growth    what was written between two samples of the logs
window        the growth of the last 30 seconds
filters       the speed that the window shows
meter         samples in, speeds out: the three above for all partitions
measurement   speeds as the messages that are published
"""
