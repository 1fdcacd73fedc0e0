/**
 * Folders as ZIP archives, and the names in an archive (APPNOTE.TXT of the format, sections in brackets).
 *
 * The same files give the same bytes: no times, no owners, sorted by path. The 64-bit extension is neither written nor
 * read.
 */

import { crc32 } from "./crc32.js";
import { promisify } from "node:util";
import { deflateRaw } from "node:zlib";

import { BundleError } from "./errors.js";

/** Something to pack. */
export interface Entry {
  /** Path in the archive, `/` between names. */
  readonly path: string;
  /** Unix mode, type included. */
  readonly mode: number;
  readonly data: Uint8Array;
}

/** Made on Unix by a version 2.0 [4.4.2]. */
const MADE_BY = (3 << 8) | 20;
/** What is needed to unpack: version 2.0 [4.4.3]. */
const NEEDED = 20;
/** Names are UTF-8 [4.4.4, bit 11]. */
const UTF8_FLAG = 1 << 11;
/** The first day of 1980, where the calendar of the format begins. */
const DATE = (1 << 5) | 1;
const UINT16_MAX = 0xffff;
const UINT32_MAX = 0xffff_ffff;

const deflate = promisify(deflateRaw);

/** Writes an archive, entry by entry. */
export class Packer {
  readonly #parts: Buffer[] = [];
  readonly #directory: Buffer[] = [];
  #size = 0;

  /** @throws {BundleError} for what does not fit the format */
  async add({ path, mode, data }: Entry): Promise<void> {
    const name = Buffer.from(path);
    if (name.length > UINT16_MAX)
      throw new BundleError(`the path ${path.slice(0, 80)}… is too long for a ZIP archive.`);
    // A deflated nothing has two bytes, which some readers do not expect.
    const packed = data.length === 0 ? Buffer.alloc(0) : await deflate(data);
    const at = this.#size;
    if (data.length >= UINT32_MAX || at + packed.length >= UINT32_MAX || this.#directory.length >= UINT16_MAX - 1) {
      throw new BundleError(`${path}: the archive becomes too large for a ZIP archive without the 64-bit extension.`);
    }
    const common = Buffer.alloc(26);
    const numbers16 = [
      NEEDED,
      name.equals(Buffer.from(path, "ascii")) ? 0 : UTF8_FLAG,
      data.length === 0 ? 0 : 8,
      0,
      DATE,
    ];
    numbers16.forEach((number, index) => common.writeUInt16LE(number, 2 * index));
    [crc32(data), packed.length, data.length].forEach((number, index) => common.writeUInt32LE(number, 10 + 4 * index));
    common.writeUInt16LE(name.length, 22);
    const made = Buffer.alloc(2);
    made.writeUInt16LE(MADE_BY);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE((mode << 16) >>> 0, 6);
    rest.writeUInt32LE(at, 10);
    this.#push(Buffer.from("PK\x03\x04"), common, name, packed);
    this.#directory.push(Buffer.concat([Buffer.from("PK\x01\x02"), made, common, rest, name]));
  }

  /** The whole archive. */
  finish(): Buffer {
    const directory = Buffer.concat(this.#directory);
    const end = Buffer.alloc(18);
    end.writeUInt16LE(this.#directory.length, 4);
    end.writeUInt16LE(this.#directory.length, 6);
    end.writeUInt32LE(directory.length, 8);
    end.writeUInt32LE(this.#size, 12);
    return Buffer.concat([...this.#parts, directory, Buffer.from("PK\x05\x06"), end]);
  }

  #push(...parts: Buffer[]): void {
    this.#parts.push(...parts);
    for (const part of parts) this.#size += part.length;
  }
}

/** Paths in an archive, in the order of its directory. Empty for what cannot be read: the service says why. */
export function pathsOf(archive: Buffer): string[] {
  const paths: string[] = [];
  const end = archive.lastIndexOf("PK\x05\x06");
  if (end < 0 || end + 22 > archive.length) return paths;
  let at = archive.readUInt32LE(end + 16);
  for (let left = archive.readUInt16LE(end + 10); left > 0; left--) {
    if (at + 46 > archive.length || archive.toString("latin1", at, at + 4) !== "PK\x01\x02") return [];
    const [name, extra, comment] = [28, 30, 32].map((offset) => archive.readUInt16LE(at + offset)) as [
      number,
      number,
      number,
    ];
    paths.push(archive.toString("utf8", at + 46, at + 46 + name));
    at += 46 + name + extra + comment;
  }
  return paths;
}
