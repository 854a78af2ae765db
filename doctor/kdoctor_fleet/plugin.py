"""What this extension adds to kdoctor."""

from kdoctor.cli.lazy import LazyCommand

FLEET = LazyCommand("kdoctor_fleet.commands.fleet:app", "Check many nodes, and judge them by their reports.")
