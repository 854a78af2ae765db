"""``kdoctor fleet``."""
