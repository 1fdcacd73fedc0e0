// Packs ZIP archives without compression, with names exactly as given: also names that no packer would write.

const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

/** @param {Buffer} bytes */
function crc32(bytes) {
  let value = 0xffffffff;
  for (const byte of bytes) value = CRC[(value ^ byte) & 0xff] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

const ZIP_VERSION = 20;
// Names are UTF-8.
const FLAGS = 0x0800;
// A regular file, -rw-r--r--, as Unix writes it.
const MODE = (0o100644 << 16) >>> 0;
const MADE_ON_UNIX = 3 << 8;
// 1980-01-01, the first day there is.
const DATE = 0x0021;

/**
 * @param {Record<string, string | Buffer>} files contents by path
 * @returns {Buffer}
 */
export function zip(files) {
  const parts = [];
  const directory = [];
  let offset = 0;
  for (const [path, contents] of Object.entries(files)) {
    const name = Buffer.from(path);
    const data = Buffer.from(contents);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(ZIP_VERSION, 0);
    common.writeUInt16LE(FLAGS, 2);
    common.writeUInt16LE(DATE, 8);
    common.writeUInt32LE(crc32(data), 10);
    common.writeUInt32LE(data.length, 14);
    common.writeUInt32LE(data.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04", "latin1"), common, name, data]);
    const made = Buffer.alloc(2);
    made.writeUInt16LE(MADE_ON_UNIX | ZIP_VERSION);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(MODE, 6);
    rest.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([Buffer.from("PK\x01\x02", "latin1"), made, common, rest, name]));
    parts.push(local);
    offset += local.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(directory.length, 4);
  end.writeUInt16LE(directory.length, 6);
  end.writeUInt32LE(central.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...parts, central, Buffer.from("PK\x05\x06", "latin1"), end]);
}
