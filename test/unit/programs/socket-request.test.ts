import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressOf, socketQuery } from '../../../server/programs/socket-request.ts'

/** A sockaddr_in, ip(7). */
function v4 (address: string, port: number) {
  return Buffer.from([2, 0, port >> 8, port & 0xff, ...address.split('.').map(Number), 0, 0, 0, 0, 0, 0, 0, 0])
}

/** A sockaddr_in6, ipv6(7). */
function v6 (words: number[], port: number) {
  return Buffer.from([10, 0, port >> 8, port & 0xff, 0, 0, 0, 0, ...words.flatMap((word) => [word >> 8, word & 0xff]),
    0, 0, 0, 0])
}

/** A sockaddr_un, unix(7). */
function unix (path: string) {
  return Buffer.from(`\u0001\0${path}\0`)
}

const ANY = [0, 0, 0, 0, 0, 0, 0, 0]
const LOOPBACK = [0, 0, 0, 0, 0, 0, 0, 1]

const tcp = (address: string, port: number, addressType: number | string = 4) => ({ address, port, addressType,
  flags: 0, index: 0 })
const place = (address: string, more = {}) => ({ address, port: -1, addressType: -1, index: 0, ...more })
/** by what is bound */
const ASKED: Record<string, [name: Buffer, protocol: string, expected: object]> = {
  'a TCP port': [v4('0.0.0.0', 8000), 'TCP', tcp('0.0.0.0', 8000)],
  'one of an address': [v4('127.0.0.1', 65_535), 'TCP', tcp('127.0.0.1', 65_535)],
  'one of IPv6': [v6(ANY, 80), 'TCPv6', tcp('::', 80, 6)],
  'one of an IPv6 address': [v6(LOOPBACK, 80), 'TCPv6', tcp('::1', 80, 6)],
  'one of Multipath TCP, which Go asks for': [v6(ANY, 80), 'MPTCPv6', tcp('::', 80, 6)],
  'a UDP port': [v4('0.0.0.0', 53), 'UDP', tcp('0.0.0.0', 53, 'udp4')],
  'a path': [unix('/run/a b.sock'), 'UNIX-STREAM', place('/run/a b.sock')],
  'a path from the working folder': [unix('app.sock'), 'UNIX', place('/srv/app/app.sock', { asked: 'app.sock' })]
}
for (const [what, [name, protocol, expected]] of Object.entries(ASKED)) {
  test(`${what} is asked for as a Node worker asks for it`, () => {
    assert.deepEqual(socketQuery(name, { protocol, isV6Only: () => false }, () => '/srv/app'), expected)
  })
}

test('a socket of IPv6 alone says so', () => {
  for (const protocol of ['TCPv6', 'UDPv6'])
    assert.equal(socketQuery(v6(ANY, 80), { protocol, isV6Only: () => true }, String)?.flags, 1)
})

const OWN: Record<string, [name: Buffer, protocol: string]> = { 'any free port': [v4('0.0.0.0', 0), 'TCP'],
  'the port of a look-up of a name': [v4('0.0.0.0', 0), 'UDP'],
  'an abstract name': [Buffer.from('\u0001\0\0name'), 'UNIX-STREAM'],
  'a datagram socket with a path': [unix('/run/log'), 'UNIX-DGRAM'],
  'a protocol of its own': [v4('0.0.0.0', 80), 'SCTP'], 'another family': [Buffer.from([16, 0, 0, 0, 1, 0, 0, 0]), ''],
  'what cannot be read': [Buffer.alloc(0), 'TCP'], 'half an address': [v4('0.0.0.0', 80).subarray(0, 6), 'TCP'],
  'a file that is no socket': [v4('0.0.0.0', 80), ''] }
for (const [what, [name, protocol]] of Object.entries(OWN)) {
  test(`${what} stays the program's own`, () => {
    assert.equal(socketQuery(name, { protocol, isV6Only: () => false }, () => '/srv/app'), null)
  })
}

test('an address is shown as a person would open it', () => {
  const shown = (address: string | null, port = 80, addressType: number | string = 4) =>
    addressOf({ address, port, addressType }).replace(/^\w+:/, '')
  assert.deepEqual([shown('0.0.0.0'), shown('::', 80, 6), shown('10.0.0.1'), shown('2001:db8::1', 80, 6),
    shown('/run/app.sock', -1, -1)], ['//localhost:80', '//localhost:80', '//10.0.0.1:80', '//[2001:db8::1]:80',
    '/run/app.sock'])
})
