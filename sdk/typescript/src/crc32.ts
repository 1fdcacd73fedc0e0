/** The checksum of ZIP archives; `zlib.crc32` is not in every Node.js this package runs on. */

/** The reversed polynomial of CRC-32 (ISO 3309). */
const POLYNOMIAL = 0xedb8_8320;

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ POLYNOMIAL : value >>> 1;
  return value >>> 0;
});

/** CRC-32 of some bytes, 0 to 2^32 - 1. */
export function crc32(data: Uint8Array): number {
  let crc = 0xffff_ffff;
  // By index: `for of` over bytes is many times slower.
  for (let at = 0; at < data.length; at++) crc = (crc >>> 8) ^ TABLE[(crc ^ data[at]!) & 0xff]!;
  return (crc ^ 0xffff_ffff) >>> 0;
}
