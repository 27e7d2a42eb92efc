/** @typedef {import('../system/posix.js').Instruction} Instruction */

// linux/bpf_common.h: class, size, mode and operation of an instruction in one number. A and X are its two registers.
const LOAD = 0x20
const LOAD_HALF = 0x28
const LOAD_HALF_AT_X = 0x48
const LOAD_HEADER_LENGTH_TO_X = 0xb1
const SHIFT_RIGHT = 0x74
const MODULO = 0x94
const IF_EQUAL = 0x15
const RETURN = 0x06
/** Offsets from there on are into the header of IP: SKF_NET_OFF. */
const IP = 0xfff00000
/** SKF_AD_OFF + SKF_AD_RANDOM: what is loaded from there is a random number. */
const RANDOM = 0xfffff000 + 56
/** RFC 8200: the header of IPv6 has a fixed length, and that of TCP begins with the source port. */
const V6_HEADER_BYTES = 40

/**
 * The classic BPF program by which the kernel picks one socket of a group for each connection: any of those that serve, and
 * for the connections of a probe the one that is probed. SO_ATTACH_REUSEPORT_CBPF, socket(7).
 * @param {number[]} serving  indexes in the group; at least one
 * @param {{ port: number, index: number }[]} probes  `port`: that the probe's connection comes from
 * @returns {Instruction[]}
 */
export function steeringProgram (serving, probes) {
  const pick = [
    ...serving.length > 1 ? /** @type {Instruction[]} */ ([[LOAD, 0, 0, RANDOM], [MODULO, 0, 0, serving.length]]) : [],
    ...serving.slice(1).flatMap((index, at) => ifEqual(at + 1, index)),
    /** @type {Instruction} */ ([RETURN, 0, 0, serving[0]])
  ]
  if (probes.length === 0) return pick
  return [
    [LOAD, 0, 0, IP],
    [SHIFT_RIGHT, 0, 0, 28],
    [IF_EQUAL, 0, 2, 6],
    [LOAD_HALF, 0, 0, IP + V6_HEADER_BYTES],
    [IF_EQUAL, 2, 2, 0],
    [LOAD_HEADER_LENGTH_TO_X, 0, 0, IP],
    [LOAD_HALF_AT_X, 0, 0, IP],
    ...probes.flatMap(({ port, index }) => ifEqual(port, index)),
    ...pick
  ]
}

/** @param {number} value @param {number} index @returns {Instruction[]} */
function ifEqual (value, index) {
  return [[IF_EQUAL, 0, 1, value], [RETURN, 0, 0, index]]
}
