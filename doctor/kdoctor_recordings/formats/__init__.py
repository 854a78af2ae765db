"""Facts from what people paste: output of ``nvidia-smi`` and ``lspci``, and kernel logs."""
