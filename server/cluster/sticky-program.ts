import type { Instruction } from '../system/posix.ts'

// linux/bpf_common.h: class, size, mode and operation of an instruction in one number. A and X are its two registers.
const LOAD = 0x20
const LOAD_NUMBER = 0x00
const LOAD_CELL = 0x60
const LOAD_CELL_TO_X = 0x61
const STORE = 0x02
const MULTIPLY = 0x24
const SHIFT_RIGHT = 0x74
const XOR_X = 0xac
const A_TO_X = 0x07
const JUMP = 0x05
const IF_EQUAL = 0x15
const IF_GREATER_THAN_X = 0x2d
const RETURN_A = 0x16
/** Offsets from there on are into the header of IP: SKF_NET_OFF. */
const IP = 0xfff00000

// Where it has the address of the client: RFC 791, RFC 8200.
const SOURCE_V4 = 12
const SOURCE_V6 = [8, 12, 16, 20]

// Cells of the program's memory.
const HASH = 0
const HIGHEST = 1
const CHOSEN = 2

// They come from the finalizer of MurmurHash3.
const FACTORS = [0x85ebca6b, 0xc2b2ae35]
const SHIFTS = [16, 13, 16]
const FOLD = 0x9e3779b1

/**
 * The classic BPF program by which the kernel picks one socket of a group for each connection, by the address of its
 * client: SO_ATTACH_REUSEPORT_CBPF, socket(7).  Each socket has a weight for each address, and the heaviest one is
 * picked (rendezvous hashing): where one comes or goes, only its own clients move. `indexes`: in the group, of the
 * sockets that are to get connections; at least one.
 */
export function stickyProgram (indexes: number[]): Instruction[] {
  const v4 = foldBytes(SOURCE_V4)
  const v6 = SOURCE_V6.flatMap(foldBytes)
  return [
    [LOAD_NUMBER, 0, 0, 0],
    [STORE, 0, 0, HASH],
    [STORE, 0, 0, HIGHEST],
    [LOAD_NUMBER, 0, 0, indexes[0]],
    [STORE, 0, 0, CHOSEN],
    // A socket of IPv6 gets packets of IPv4 too.
    [LOAD, 0, 0, IP],
    [SHIFT_RIGHT, 0, 0, 28],
    [IF_EQUAL, 0, v4.length + 1, 4],
    ...v4,
    [JUMP, 0, 0, v6.length],
    ...v6,
    ...mixHash(),
    ...indexes.flatMap(weighMember),
    [LOAD_CELL, 0, 0, CHOSEN],
    [RETURN_A, 0, 0, 0]
  ]
}

/** `offset`: of 4 bytes */
function foldBytes (offset: number): Instruction[] {
  return [[LOAD_CELL, 0, 0, HASH], [MULTIPLY, 0, 0, FOLD], [A_TO_X, 0, 0, 0], [LOAD, 0, 0, IP + offset], [XOR_X, 0, 0,
    0], [STORE, 0, 0, HASH]]
}

/** @returns addresses that differ in one bit have nothing in common afterwards */
function mixHash (): Instruction[] {
  return [[LOAD_CELL, 0, 0, HASH],
    ...SHIFTS.flatMap((bits, round) =>
      [[A_TO_X, 0, 0, 0], [SHIFT_RIGHT, 0, 0, bits], [XOR_X, 0, 0, 0],
        ...(round in FACTORS ? [[MULTIPLY, 0, 0, FACTORS[round]]] : [])] as Instruction[]
    ), [STORE, 0, 0, HASH]]
}

function weighMember (index: number): Instruction[] {
  return [[LOAD_CELL, 0, 0, HASH], [MULTIPLY, 0, 0, factorOf(index)], [LOAD_CELL_TO_X, 0, 0, HIGHEST], [
    IF_GREATER_THAN_X,
    0,
    3,
    0
  ], [STORE, 0, 0, HIGHEST], [LOAD_NUMBER, 0, 0, index], [STORE, 0, 0, CHOSEN]]
}

/** @returns odd, and unlike that of any other */
function factorOf (index: number): number {
  const mixed = SHIFTS.reduce((hash, bits, round) => Math.imul(hash ^ (hash >>> bits), FACTORS[round] ?? 1), index + 1)
  return (mixed | 1) >>> 0
}
