"""Requests of every RPC with a text in every field that takes one, made from the descriptors of the contract."""

import importlib
import pathlib
import pkgutil

import portcullis.v1
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor

# Services that users implement: in the contract, and not served.
NOT_SERVED = {"ExtensionService"}
DEPTH_MAX = 6


def methods():
    """Every method that is served, by `Service/Method`."""
    found = {}
    for module in pkgutil.iter_modules(portcullis.v1.__path__):
        if not module.name.endswith("_pb2"):
            continue
        file = importlib.import_module(f"portcullis.v1.{module.name}").DESCRIPTOR
        for service in file.services_by_name.values():
            if service.name not in NOT_SERVED:
                found |= {f"{service.name}/{method.name}": method for method in service.methods}
    return found


def protos():
    """Services and methods as the .proto files write them: what the stubs must have."""
    found = set()
    folder = pathlib.Path(__file__).resolve().parents[2] / "proto" / "portcullis" / "v1"
    for file in folder.glob("*.proto"):
        service = None
        for line in file.read_text().splitlines():
            words = line.split()
            if words[:1] == ["service"]:
                service = words[1]
            elif words[:1] == ["rpc"] and service not in NOT_SERVED:
                found.add(f"{service}/{words[1].partition('(')[0]}")
    return found


def filled(descriptor, text, choices=None, depth=0):
    """A message with `text` in every string and bytes field. `choices` names the field of each oneof by its full name."""
    message = message_factory.GetMessageClass(descriptor)()
    for field in descriptor.fields:
        oneof = field.containing_oneof
        if oneof is not None and (choices or {}).get(oneof.full_name, oneof.fields[0].name) != field.name:
            continue
        set_field(message, field, text, choices, depth)
    return message


def set_field(message, field, text, choices, depth):
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        if field.message_type.fields_by_name["value"].type == FieldDescriptor.TYPE_STRING:
            getattr(message, field.name)["args.text"] = text
        return
    if field.message_type is not None:
        if depth < DEPTH_MAX and field.message_type.file.package == "portcullis.v1":
            value = filled(field.message_type, text, choices, depth + 1)
            target = getattr(message, field.name)
            target.append(value) if field.is_repeated else target.CopyFrom(value)
        return
    values = {
        FieldDescriptor.TYPE_STRING: text,
        FieldDescriptor.TYPE_BYTES: text.encode(),
    }
    if field.type in values:
        value = values[field.type]
    elif field.type == FieldDescriptor.TYPE_ENUM:
        value = field.enum_type.values[-1].number
    else:
        return
    if field.is_repeated:
        getattr(message, field.name).append(value)
    else:
        setattr(message, field.name, value)


def oneofs(descriptor, seen=None):
    """Every oneof below a message with the names of its fields."""
    seen = {} if seen is None else seen
    for field in descriptor.fields:
        oneof = field.containing_oneof
        if oneof is not None and oneof.full_name not in seen and len(oneof.fields) > 1:
            seen[oneof.full_name] = [each.name for each in oneof.fields]
        inner = field.message_type
        if inner is not None and inner.file.package == "portcullis.v1" and f"!{inner.full_name}" not in seen:
            seen[f"!{inner.full_name}"] = []
            oneofs(inner, seen)
    return {name: fields for name, fields in seen.items() if name.startswith("!") or fields}


def requests(method, text):
    """Requests of a method: one for each choice of each oneof."""
    descriptor = method.input_type
    yield filled(descriptor, text)
    for name, fields in oneofs(descriptor).items():
        for field in fields[1:]:
            yield filled(descriptor, text, {name: field})
