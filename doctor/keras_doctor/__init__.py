"""The entry of the commands ``kdoctor`` and ``keras-doctor``."""
