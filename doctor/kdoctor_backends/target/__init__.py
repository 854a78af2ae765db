"""Programs that train in the examined interpreter."""
