"""Debian's torchrun (PyTorch 1.13) made to run on Python 3.11, for comparison only.

Its log-redirection flag is an IntFlag that is looked up by value; Python 3.11 no longer lists the zero
member, so every start fails before it begins. The look-up is replaced; nothing else is touched.
"""
import torch.distributed.elastic.multiprocessing.api as api

api.Std.from_str = classmethod(lambda cls, text: cls(int(text)))

from torch.distributed.run import main  # noqa: E402  (after the repair)

if __name__ == "__main__":
    main()
