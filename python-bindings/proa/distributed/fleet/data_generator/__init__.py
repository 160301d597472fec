"""Data generators: programs that turn raw lines into MultiSlot lines (for each slot the number of its values, then the values),
run as pipe commands of data sets."""
from .data_generator import DataGenerator, MultiSlotDataGenerator, MultiSlotStringDataGenerator

__all__ = ["DataGenerator", "MultiSlotDataGenerator", "MultiSlotStringDataGenerator"]
