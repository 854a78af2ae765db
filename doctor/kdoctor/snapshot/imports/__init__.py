"""Facts from what people paste: output of ``nvidia-smi``, ``lspci`` and ``lstopo``, and kernel logs."""
