"""Secrets that no service of the world knows, one of each kind for each place where it is planted; and where they are found.

A canary is computed from its place, so that the search knows all of them without a list.
"""

import base64
import hashlib
import itertools
import subprocess
import tempfile
import urllib.parse

KINDS = ("api_key", "password_in_url", "card", "private_key", "email")
# What tests elsewhere send as secrets.
OF_OTHER_TESTS = (
    "123-45-6789",
    "jane.roe@corp-mail.net",
    "AKIAQYLPMN5HHHFPZAM2",
)


def _digest(place, kind, salt=""):
    return hashlib.sha256(f"{kind} at {place}{salt}".encode()).digest()


def _key(place):
    """An access key with letters and digits, as the rule about it wants them; one without is taken for a word."""
    for salt in itertools.count():
        key = base64.b32encode(_digest(place, "api_key", salt)).decode()[:16]
        if sum(each.isdigit() for each in key) in range(2, 8) and len({key[at : at + 2] for at in range(15)}) == 15:
            return "AKIA" + key


def _card(digest):
    """Sixteen digits with a good check digit."""
    digits = "4" + str(int.from_bytes(digest[:8], "big")).zfill(20)[-14:]
    total = sum(sum(divmod(int(each) * (2 - at % 2), 10)) for at, each in enumerate(digits))
    return digits + str(-total % 10)


def canary(place, kind):
    """The text to plant, and the part of it that must be found nowhere."""
    digest = _digest(place, kind)
    word = base64.b32encode(digest).decode()
    if kind == "api_key":
        key = _key(place)
        return f"AWS_ACCESS_KEY_ID={key}", key
    if kind == "password_in_url":
        password = f"Pw{word[:14].lower()}9"
        return f"postgres://svc:{password}@db.corp-canary.net:5432/prod", password
    if kind == "card":
        card = _card(digest)
        return f"card {card}", card
    if kind == "private_key":
        line = base64.b64encode(digest * 2).decode()[:64]
        return f"-----BEGIN PRIVATE KEY-----\n{line}\n{line[::-1]}\n-----END PRIVATE KEY-----", line
    name = f"{word[:10].lower()}.{word[10:14].lower()}"
    return f"{name}@corp-canary.net", name


def text(place):
    """A text that holds one canary of each kind."""
    return "Keep this safe: " + " and ".join(canary(place, kind)[0] for kind in KINDS)


def forms(secret):
    """The secret as it is, and as a program may write it: reversed letter case, base64, hex, percent and JSON."""
    found = {secret, secret.lower(), secret.upper(), secret.encode().hex(), urllib.parse.quote(secret, safe="")}
    for shift in range(3):
        # The characters of base64 that depend on the secret alone.
        encoded = base64.b64encode(b"\0" * shift + secret.encode()).decode()
        found.add(encoded[-(-shift * 8 // 6) : len(encoded) - 4])
    return {each.encode() for each in found if len(each) >= 8}


class Search:
    """Looks for the canaries of places. Thousands of texts are looked for at once, which grep does in one pass."""

    def __init__(self, places, others=OF_OTHER_TESTS):
        self.of = {}
        for place in places:
            for kind in KINDS:
                for form in forms(canary(place, kind)[1]):
                    self.of[form] = f"{kind} of {place}"
        for secret in others:
            for form in forms(secret):
                self.of[form] = f"`{secret}` of other tests"

    def _grep(self, *where, data=None):
        """Matches as `file:text` or, of data, as `text`."""
        with tempfile.NamedTemporaryFile() as patterns:
            patterns.write(b"\n".join(sorted(self.of)))
            patterns.flush()
            command = ["grep", "-aoF", "-f", patterns.name, *where]
            done = subprocess.run(command, input=data, capture_output=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
        assert done.returncode in (0, 1), done.stderr
        return done.stdout.splitlines()

    def found(self, data):
        """Names of the canaries in these bytes, each with what was found."""
        return {self.of[line]: line.decode() for line in self._grep("-h", "-", data=data)}

    def found_below(self, folder):
        """The same for all files below a folder, with the file."""
        found = {}
        # A zero byte ends the name of the file.
        for line in self._grep("-rZH", str(folder)):
            file, _, text = line.partition(b"\0")
            found.setdefault((self.of[text], file.decode()), text.decode())
        return found
