import type { Instruction } from '../system/posix.ts'

// linux/bpf_common.h: class, size, mode and operation of an instruction in one number. A and X are its two registers.
const LOAD = 0x20
const LOAD_HALF = 0x28
const LOAD_BYTE = 0x30
const LOAD_HALF_AT_X = 0x48
const LOAD_HEADER_LENGTH_TO_X = 0xb1
const A_TO_X = 0x07
const SHIFT_RIGHT = 0x74
const MODULO = 0x94
const JUMP = 0x05
const IF_EQUAL = 0x15
const IF_EQUAL_X = 0x1d
const IF_ANY_BIT = 0x45
const RETURN = 0x06
const WHOLE_PACKET = 0xffffffff
/** Where the header of TCP has its flags, and the one of a first packet: RFC 9293. */
const TCP_FLAGS = 13
const SYN = 2
/** Offsets from there on are into the header of IP: SKF_NET_OFF. */
const IP = 0xfff00000
/** SKF_AD_OFF + SKF_AD_RANDOM: what is loaded from there is a random number. */
const RANDOM = 0xfffff000 + 56
// Where the header of IP has the last 4 bytes of both addresses: RFC 791, RFC 8200. That of IPv6 has a fixed length,
// and that of TCP begins with the source port.
const V4 = { source: 12, destination: 16 }
const V6 = { source: 20, destination: 36, bytes: 40 }

/**
 * The classic BPF program by which the kernel picks one socket of a group for each connection: any of those that serve,
 * and for the connections of a probe the one that is probed. SO_ATTACH_REUSEPORT_CBPF, socket(7).
 * @param serving indexes in the group; at least one
 * @param probes `port`: that the probe's connection comes from, at the address that it goes to
 */
export function steeringProgram (serving: number[], probes: { port: number, index: number }[]): Instruction[] {
  const pick = [...serving.length > 1 ? ([[LOAD, 0, 0, RANDOM], [MODULO, 0, 0, serving.length]] as Instruction[]) : [],
    ...serving.slice(1).flatMap((index, at) => ifEqual(at + 1, index)), [RETURN, 0, 0, serving[0]] as Instruction]
  return probes.length === 0 ? pick : [...pickProbed(probes), ...pick]
}

/**
 * The program by which a socket takes no new connection but those of probes: SO_ATTACH_FILTER, socket(7). What has
 * begun goes on.
 */
export function probesOnlyProgram (probes: { port: number }[]): Instruction[] {
  return [...takeFrom(probes, WHOLE_PACKET), [LOAD_BYTE, 0, 0, TCP_FLAGS], [IF_ANY_BIT, 0, 1, SYN], [RETURN, 0, 0, 0], [
    RETURN,
    0,
    0,
    WHOLE_PACKET
  ]]
}

/** The program by which a socket takes all connections but these. */
export function allButProgram (checks: { port: number }[]): Instruction[] {
  return [...takeFrom(checks, 0), [RETURN, 0, 0, WHOLE_PACKET]]
}

/** `bytes`: of each of their packets */
function takeFrom (probes: { port: number }[], bytes: number): Instruction[] {
  return probes.length === 0 ? [] : pickProbed(probes.map(({ port }) => ({ port, index: bytes })))
}

/** @returns another machine may use the same port, so both addresses have to be the same */
function pickProbed (probes: { port: number, index: number }[]): Instruction[] {
  const choices = probes.flatMap(({ port, index }) => ifEqual(port, index))
  const portOfV4 = [[LOAD_HEADER_LENGTH_TO_X, 0, 0, IP], [LOAD_HALF_AT_X, 0, 0, IP]] as Instruction[]
  const v4 = [...skipOthers(V4, portOfV4.length + choices.length), ...portOfV4]
  const portOfV6 = [[LOAD_HALF, 0, 0, IP + V6.bytes], [JUMP, 0, 0, v4.length]] as Instruction[]
  const v6 = [...skipOthers(V6, portOfV6.length + v4.length + choices.length), ...portOfV6]
  return [[LOAD, 0, 0, IP], [SHIFT_RIGHT, 0, 0, 28], [IF_EQUAL, 0, v6.length, 6], ...v6, ...v4, ...choices]
}

/** `count`: of instructions that are for connections within one address */
function skipOthers ({ source, destination }: { source: number, destination: number }, count: number): Instruction[] {
  return [[LOAD, 0, 0, IP + destination], [A_TO_X, 0, 0, 0], [LOAD, 0, 0, IP + source], [IF_EQUAL_X, 1, 0, 0], [JUMP, 0,
    0, count]]
}

function ifEqual (value: number, index: number): Instruction[] {
  return [[IF_EQUAL, 0, 1, value], [RETURN, 0, 0, index]]
}
