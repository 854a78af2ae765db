"""What installed distributions add to kdoctor: its own checks, its extensions, and plugins of third parties."""
