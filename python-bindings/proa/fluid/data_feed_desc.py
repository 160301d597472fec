"""fluid.DataFeedDesc: the description of a data feed (which slots a line has) in protobuf's text format."""
from ..framework.text_message import Message, messages_of

__all__ = ["DataFeedDesc", "FeedMessage"]


class FeedMessage(Message):
    """Paddle's message DataFeedDesc, or a message in one."""

    messages = messages_of("""
DataFeedDesc
 1 string name
 2 int32 batch_size 32
 3 MultiSlotDesc multi_slot_desc
 4 string pipe_command
 5 int32 thread_num
 6 string rank_offset
 7 int32 pv_batch_size 32
 8 int32 input_type 0

MultiSlotDesc
 1 Slot* slots

Slot
 1 string name
 2 string type
 3 bool is_dense False
 4 bool is_used False
 5 int32* shape
""")


class DataFeedDesc:
    """The description that a text file holds; of a MultiSlotDataFeed, slots can be made dense and used by name."""

    def __init__(self, proto_file):
        self.proto_desc = FeedMessage("DataFeedDesc")
        with open(proto_file) as file:
            try:
                self.proto_desc.merge_text(file.read())
            except ValueError as error:
                raise ValueError(f"DataFeedDesc: {proto_file}: {error}") from None
        self.proto_desc.set("pipe_command", "cat")

    def _slots(self, who, names):
        if self.proto_desc.get("name") != "MultiSlotDataFeed":
            raise ValueError(f"DataFeedDesc.{who}: only a MultiSlotDataFeed has slots, and this is a "
                             f"{self.proto_desc.get('name') or 'feed without a name'!r}")
        slots = {slot.get("name"): slot for slot in self.proto_desc.get("multi_slot_desc").get("slots")}
        for name in names:
            if name not in slots:
                raise ValueError(f"DataFeedDesc.{who}: there is no slot {name!r}; there are {', '.join(slots)}")
        return [slots[name] for name in names]

    def set_batch_size(self, batch_size):
        """The number of samples of a batch."""
        self.proto_desc.set("batch_size", int(batch_size))

    def set_dense_slots(self, dense_slots_name):
        """Slots of these names hold as many values in every sample."""
        for slot in self._slots("set_dense_slots", dense_slots_name):
            slot.set("is_dense", True)

    def set_use_slots(self, use_slots_name):
        """Slots of these names are read."""
        for slot in self._slots("set_use_slots", use_slots_name):
            slot.set("is_used", True)

    def desc(self):
        """The text."""
        return self.proto_desc.to_text()
