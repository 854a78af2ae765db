"""Tables of the messages in the kernel log: Xids, errors of NVLink 5 and SXids, with their sources."""
