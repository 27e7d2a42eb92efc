import type { Program } from '../programs.ts'

const TLS = '../../fixtures/tls'

/** What speaks something other than HTTP/1 over TCP, or nothing. */
export const PROTOCOLS: Program[] = [
  { name: 'http', packages: {}, entry: 'http.cjs', asks: { expects: 'hello from node:http' } },
  { name: 'https', packages: {}, files: ['https.cjs', TLS], entry: 'https.cjs',
    asks: { protocol: 'https', expects: 'hello over https' } },
  { name: 'http2-cleartext', packages: {}, entry: 'http2-cleartext.cjs',
    asks: { protocol: 'h2c', expects: 'hello over h2c' } },
  { name: 'http2-tls', packages: {}, files: ['http2-tls.cjs', TLS], entry: 'http2-tls.cjs',
    asks: { protocol: 'h2', expects: 'hello over h2' } },
  { name: 'fastify-http2', packages: { fastify: '5' }, entry: 'fastify-http2.mjs',
    asks: { protocol: 'h2c', expects: 'from fastify' } },
  { name: 'grpc', packages: { '@grpc/grpc-js': '1', '@grpc/proto-loader': '0.8' }, files: ['grpc.cjs', 'hello.proto'],
    entry: 'grpc.cjs', asks: { protocol: 'grpc', expects: 'hello gallery' } },
  { name: 'ws', packages: { ws: '8' }, entry: 'ws.mjs',
    asks: { protocol: 'websocket', send: 'gallery', expects: 'hello gallery' } },
  { name: 'fastify-websocket', packages: { '@fastify/websocket': '11', fastify: '5' }, entry: 'fastify-websocket.mjs',
    asks: { protocol: 'websocket', send: 'gallery', expects: 'hello gallery' } },
  { name: 'graphql-ws', packages: { 'graphql-ws': '6', graphql: '16', ws: '8' }, entry: 'graphql-ws.mjs',
    asks: { protocol: 'websocket', path: '/graphql', subprotocol: 'graphql-transport-ws', send: '{"type":"ping"}',
      expects: 'pong' } },
  { name: 'socket.io', packages: { 'socket.io': '4' }, entry: 'socket-io.cjs',
    asks: { protocol: 'socket.io', send: 'gallery', expects: 'hello gallery' } },
  { name: 'y-websocket', packages: { 'y-websocket': '2', yjs: '13' }, entry: 'node_modules/.bin/y-websocket',
    env: () => ({ HOST: '127.0.0.1' }), asks: { protocol: 'websocket', path: '/document', expects: '\0' } },
  // CONNECT as client of no name, then PINGREQ, as MQTT 3.1.1 has them.
  { name: 'aedes', packages: { aedes: '1' }, entry: 'aedes.cjs',
    asks: { protocol: 'tcp', greeting: '\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00', send: '\xc0\x00',
      expects: '\xd0\x00' } },
  { name: 'smtp-server', packages: { 'smtp-server': '3' }, entry: 'smtp-server.cjs',
    asks: { protocol: 'tcp', greeting: '', send: 'NOOP\r\n', expects: '250' } },
  // A bind request as LDAP 3 has it, with no password.
  { name: 'ldapjs', packages: { ldapjs: '3' }, entry: 'ldapjs.cjs',
    asks: { protocol: 'tcp', send: '0\x13\x02\x01\x01`\x0e\x02\x01\x03\x04\x07cn=root\x80\x00',
      expects: 'a\x07\n\x01\x00' } },
  { name: 'net-echo', packages: {}, entry: 'net-echo.cjs',
    asks: { protocol: 'tcp', send: 'gallery\n', expects: 'hello gallery' } },
  { name: 'unix-socket', packages: {}, entry: 'unix-socket.cjs', env: ({ socket }) => ({ SOCKET: socket }),
    listens: ({ socket }) => [socket], asks: { over: 'socket', expects: 'hello over a Unix socket' } },
  { name: 'udp-echo', packages: {}, entry: 'udp-echo.cjs', flags: () => ['--ready-signal', 'online'],
    asks: { protocol: 'udp', send: 'gallery', expects: 'hello gallery' } },
  { name: 'bot', packages: {}, entry: 'bot.cjs', flags: () => ['--ready-signal', 'online'], listens: () => [] }
]
