"""Which device a study trains on. Importing this loads no torch."""

from redline.files import UserError


def use_one_thread() -> None:
    """One thread, whatever the environment says: more of them sum in another order."""
    import torch

    torch.set_num_threads(1)


def resolve(device: str) -> str:
    """The device kind that `device` means here; it becomes part of every trial's identity.

    Raises:
        UserError: a kind that this version does not train on.
    """
    if device in ("auto", "cpu"):
        return "cpu"
    # The plain loop would run there, but an accelerator's one numerics path will be the stacked
    # one: trials trained now would carry an id whose numbers a later version could not repeat.
    raise UserError(f'device = "{device}": this version trains on "cpu" only')
