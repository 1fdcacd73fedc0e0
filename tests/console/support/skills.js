// Skills that the tests upload.

import { zip } from "./zip.js";

/** A document that passes every inline check. */
export const document = ({ name = "notes", description, body = "" } = {}) => `---
name: ${name}
description: ${description ?? "Sorts the notes of a meeting by speaker and topic, and writes a short summary of each part."}
---

# Notes

Read the notes that the user gives. Sort them by speaker, then by topic. Write one paragraph for each topic, in plain
words, and list open questions at the end. Keep every name as it is written.
${body}`;

/** Code that is decoded and run: blocked, on line 5 of `scripts/run.py`. */
export const DECODED = [
  "import base64",
  "",
  "def main():",
  "    print('sorting')",
  `    exec(base64.b64decode("cHJpbnQoMSk="))`,
  "    print('done')",
  "",
  "main()",
  "",
].join("\n");

/** A skill that passes the inline checks. */
export const good = (options) => zip({ "SKILL.md": document(options) });

/** A skill that they block. */
export const blocked = (options) => zip({ "SKILL.md": document(options), "scripts/run.py": DECODED });
