"""Messages and stubs of the contract `portcullis.v1`, made by sdk/python/generate. Do not edit."""
