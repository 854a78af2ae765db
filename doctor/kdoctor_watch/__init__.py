"""``kdoctor.Watch``: looks at a training of the user's while it runs, in the user's process."""
