"""Why a job failed: reads its logs, recognises known failures, and orders them into causes and consequences."""
